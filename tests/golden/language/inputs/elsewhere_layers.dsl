# What the words of others in frontend/elsewhere.def for layers and parts of tensors are, in a model that is right.
use nn
model others() {
  input image : u8[B, 8, 8, 3]
  input ids : i32[B, 4]
  input label : i32[B]
  x = cast(image, f32) / 255
  cropped = x[:, 1:-1, 1:-1]
  padded = pad(x, [0, 1, 1, 0], [0, 1, 1, 0])
  first = x[:, 0]
  bag = max(one_hot(ids, 9), axis = 1)
  kind = one_hot(label, 3)
  row = concat([bag, kind, one_hot(hash(label, 5), 5)], axis = 1)
  steps = repeat(expand(row, 1), 4, axis = 1)
  h = nn.lstm(nn.dense(steps, 8), 6)
  y = nn.drop_path(h * hard_sigmoid(h), 0.1)
  train a = mean(square(y)) with [accumulate(4), adam(), average(0.999)]
  predict p = mean(y, axis = 1)
  predict q = mean(padded, axis = [1, 2]) + mean(cropped, axis = [1, 2]) + first[:, 0]
  predict r = select(is_finite(h), h - floor(h), 0)
}

# LeNet: two convolutions with pooling, then dense layers.
use nn

model lenet(rate = 1e-3, steps = 0) {
  input image : u8[B, 28, 28]
  input label : u8[B]

  x      = reshape(cast(image, f32) / 255, [B, 28, 28, 1])
  c1     = nn.max_pool2d(nn.conv2d(x, 6, size = 5, activation = relu))
  c2     = nn.max_pool2d(nn.conv2d(c1, 16, size = 5, padding = "valid", activation = relu))
  h1     = nn.dense(flatten(c2), 120, relu)
  h2     = nn.batch_norm(nn.dense(h1, 84, relu))
  logits = nn.dense(h2, 10)
  loss   = softmax_cross_entropy(logits, label)

  train   mean(loss) with adam(rate = one_cycle(rate, steps) if steps > 0 else rate)
  metric  accuracy    = mean(correct(logits, label))
  predict probability = softmax(logits)

  data train {
    image = "data/train-images.idx"
    label = "data/train-labels.idx"
  }
  data test {
    image = "data/test-images.idx"
    label = "data/test-labels.idx"
  }
}

# SPDX-License-Identifier: Apache-2.0

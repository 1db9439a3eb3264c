# ResNet-20 (He, Zhang, Ren, Sun 2015): three groups of three blocks, each of which adds to what comes in. It tells digits in a colour
# on paper of another. Either may be the brighter one, so that no pixel alone says anything.
use nn

layer conv(x, filters, stride) {
  return nn.batch_norm(nn.conv2d(x, filters, stride = stride, initial = he_normal, use_bias = false))
}

layer block(x : T[N, H, W, C], filters, stride) {
  y = conv(relu(conv(x, filters, stride)), filters, 1)
  # What is new has no shortcut of its own: every second place, and channels of zeros (the paper's option A).
  short = pad(x[:, ::stride, ::stride], [0, 0, 0, 0], [0, 0, 0, filters - C]) if filters > C else x
  return relu(y + short)
}

# Digits of half the size, in colours that are drawn for each.
function coloured(image : u8[B, H, W]) {
  ink   = nn.mean_pool2d(expand(cast(image, f32) / 255))
  paper = random_uniform(f32[B, 1, 1, 3], -1, 1)
  pen   = random_uniform(f32[B, 1, 1, 3], -1, 1)
  return paper + (pen - paper) * ink
}

model resnet(groups = 3, blocks = 3, filters = 16, rate = 0.01) {
  input image : u8[B, 28, 28]
  input label : u8[B]

  picture = coloured(image)
  x       = relu(conv(picture, filters, 1))
  for g in 0..groups {
    for i in 0..blocks { x = block(x, filters * 2 ** g, stride = 2 if g > 0 and i == 0 else 1) }
  }
  logits = nn.dense(mean(x, axis = [1, 2]), 10)
  loss   = softmax_cross_entropy(logits, label)

  train   mean(loss) with momentum(rate = rate)
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

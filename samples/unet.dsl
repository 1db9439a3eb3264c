# A U-Net (Ronneberger, Fischer, Brox 2015): which pixels of a noisy picture belong to a digit, and to which? Far down it sees the
# whole, and what it saw on the way down is beside what comes up.
use nn

layer two(x, filters) {
  first = nn.conv2d(x, filters, activation = relu)
  return nn.conv2d(first, filters, activation = relu)
}

layer joined(x, beside, filters) {
  up = nn.conv_transpose(x, filters, size = 2, stride = 2)
  return two(concat([up, beside], axis = 3), filters)
}

model unet(filters = 8, rate = 3e-3) {
  input image : u8[B, 28, 28]
  input label : u8[B]

  clean  = cast(image, f32) / 255
  digit  = expand(expand(cast(expect_range(label, 0, 9), i32), 1), 1) + 1
  class  = select(clean > 0.4, broadcast(digit, [B, 28, 28]), 0)     # 0: paper
  x      = expand(0.5 * clean + 0.5 * random_uniform(type(clean)))
  a      = two(x, filters)
  b      = two(nn.max_pool2d(a), 2 * filters)
  c      = two(nn.max_pool2d(b), 4 * filters)
  y      = joined(joined(c, b, 2 * filters), a, filters)
  logits = nn.conv2d(y, 11, size = 1)
  loss   = softmax_cross_entropy(logits, class)

  guess   = argmax(logits, axis = 3)
  ink     = class > 0
  right   = cast(ink and guess == class, f32)
  train   mean(loss) with adam(rate = rate)
  metric  overlap = ratio(sum(right), sum(cast(ink or guess > 0, f32)))   # of the ink that is there or said, what is right
  predict segment = cast(guess, u8)

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

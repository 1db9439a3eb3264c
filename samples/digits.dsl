# A two-layer perceptron on 28x28 digits.
use nn

model digits(hidden = 512, rate = 1e-3) {
  input image : u8[B, 28, 28]          # B is the batch: the axis that is split over towers
  input label : u8[B]

  x      = flatten(cast(image, f32) / 255)
  h      = nn.dense(x, units = hidden, activation = relu)
  logits = nn.dense(h, units = 10)
  loss   = softmax_cross_entropy(logits, label)                 # f32[B]

  train   mean(loss) with adam(rate = rate)
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

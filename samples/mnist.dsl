# A perceptron with two hidden layers for the MNIST digits; the data is given on the command line.
use nn

model mnist(hidden = 512, drop = 0.3, rate = 1e-3, steps = 630) {
  input image : u8[B, 28, 28]
  input label : u8[B]

  x      = flatten(cast(image, f32) / 255)
  h1     = dropout(nn.dense(x, hidden, relu), drop)
  h2     = dropout(nn.dense(h1, hidden, relu), drop)
  logits = nn.dense(h2, units = 10)
  loss   = softmax_cross_entropy(logits, label)

  # The rate falls to 0 over `steps` steps: ten epochs of 8,000 digits in batches of 128.
  train   mean(loss) with adam(rate = cosine_decay(rate, steps))
  metric  accuracy    = mean(correct(logits, label))
  predict probability = softmax(logits)
}

# SPDX-License-Identifier: Apache-2.0

# The benchmark perceptron: 784-512-512-10 on f32 pixels. `--set method=sgd` trains without state.
use nn

model perceptron(hidden = 512, rate = 1e-3, method = adam, precision = "f32") with precision = precision {
  input image : f32[B, 784]
  input label : i32[B]

  h1     = nn.dense(image, units = hidden, activation = relu)
  h2     = nn.dense(h1, units = hidden, activation = relu)
  logits = nn.dense(h2, units = 10)
  loss   = softmax_cross_entropy(logits, label)

  train   mean(loss) with method(rate = rate)
  metric  accuracy    = mean(correct(logits, label))
  predict probability = softmax(logits)
}

# SPDX-License-Identifier: Apache-2.0

# Logistic regression on two classes, with weight decay.
model logistic(features = 2, rate = 0.5, decay = 1e-4) {
  input x     : f32[B, features]
  input label : f32[B]                  # 0 or 1

  var weight : f32[features, 1] = zeros()
  var bias   : f32              = zeros()

  logit = squeeze(x @ weight, 1) + bias
  loss  = sigmoid_cross_entropy(logit, label)

  train   total = mean(loss) + decay * sum(square(weight)) with momentum(rate = rate, mu = 0.9)
  metric  accuracy    = mean((logit > 0) == (label > 0.5))
  predict probability = sigmoid(logit)
}

# SPDX-License-Identifier: Apache-2.0

# Linear regression: one weight per feature and a bias, trained by gradient descent.
model linear(features = 4, rate = 0.1) {
  input x : f32[B, features]
  input y : f32[B]

  var weight : f32[features, 1] = zeros()
  var bias   : f32              = zeros()

  guess = squeeze(x @ weight, 1) + bias
  loss  = squared_error(guess, y)

  train   mean(loss) with sgd(rate = rate)
  metric  error = mean(absolute_error(guess, y))
  predict value = guess
}

# SPDX-License-Identifier: Apache-2.0

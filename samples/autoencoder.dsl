# An autoencoder: 784 pixels through a narrow code and back.
use nn

model autoencoder(hidden = 128, code = 16, rate = 1e-3, steps = 1000) {
  input image : u8[B, 28, 28]

  x     = flatten(cast(image, f32) / 255)
  inner = nn.dense(nn.dense(x, hidden, relu), code)
  outer = nn.dense(nn.dense(inner, hidden, relu), 784)
  loss  = mean(sigmoid_cross_entropy(outer, x), axis = 1)

  train   mean(loss) with adam(rate = warmup(cosine_decay(rate, steps, alpha = 0.1), 50))
  metric  error       = mean(squared_error(sigmoid(outer), x))
  predict code_of     = inner
  predict restoration = reshape(sigmoid(outer), [B, 28, 28])
}

# SPDX-License-Identifier: Apache-2.0

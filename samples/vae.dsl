# A variational autoencoder: a code that is drawn from a normal distribution, of which only as much is known as the picture needs.
# What is predicted are pictures of the codes' means.
use nn

layer encoder(x, hidden : int, code : int) {
  h = nn.dense(x, hidden, relu)
  return nn.dense(h, 2 * code)
}

model vae(hidden = 256, code = 8, rate = 1e-3) {
  input image : u8[B, 28, 28]

  x      = flatten(cast(image, f32) / 255)
  inner  = encoder(x, hidden, code)
  mu     = inner[:, 0:code]
  spread = inner[:, code:]
  drawn  = reparameterize(mu, spread)
  outer  = nn.mlp.new([hidden, 784], activation = leaky_relu)
  pixels = sum(sigmoid_cross_entropy(outer(drawn if training else mu), x), axis = 1)
  told   = kl_normal(mu, spread)

  train   loss = mean(pixels + told) with adam(rate = rate)
  metric  nats = mean(told)
  predict code_of     = mu
  predict restoration = reshape(sigmoid(outer(mu)), [B, 28, 28])

  data train { image = "data/train-images.idx" }
  data test  { image = "data/test-images.idx" }
}

# SPDX-License-Identifier: Apache-2.0

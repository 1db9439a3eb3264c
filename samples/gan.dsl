# A generative adversarial network, Wasserstein's with a gradient penalty (arXiv:1704.00028). The maker turns noise into
# points that lie as the real ones do, in eight heaps around a ring; the critic says how real a point is, and is held to
# slopes of 1 between real and made ones.
use nn

layer network(x, hidden, units) { return nn.dense(nn.mlp(x, [hidden, hidden], leaky_relu), units) }

model gan(hidden = 64, rate = 2e-3, weight = 1.0) {
  input real : f32[B, 2]

  critic = network.new(hidden, 1)
  maker  = network.new(hidden, 2)
  made   = maker(random_normal(f32[B, 8]))

  share   = random_uniform(f32[B, 1])
  between = stop_gradient(share * real + (1 - share) * made)
  slope   = gradient(sum(critic(between)), between)
  penalty = mean(square(norm(slope, axis = 1) - 1))
  lead    = mean(critic(real)) - mean(critic(made))

  train judging = weight * penalty - lead with adam(rate, beta1 = 0.5, beta2 = 0.9) over critic
  train making  = -mean(critic(made)) with adam(rate / 4, beta1 = 0.5, beta2 = 0.9) over maker

  turn    = pi / 4 * iota(f32[8])                   # how far a point lies from the nearest heap, and how evenly
  center  = stack([cos(turn), sin(turn)], 1)
  away    = min(norm(expand(made, 1) - center, axis = 2), axis = 1)
  metric  distance = mean(away)
  metric  middle   = norm(mean(made, axis = 0))
  metric  slopes   = mean(norm(slope, axis = 1))
  predict point    = made

  data train { real = "data/ring.csv" }
  data test  { real = "data/ring.csv" }
}

# SPDX-License-Identifier: Apache-2.0

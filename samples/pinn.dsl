# A physics-informed network: the heat equation u_t = u_xx / 10 on a rod with cold ends, from u = sin(pi x) at t = 0. The
# rod and its beginning stand in the form of u; what is trained is the equation, at random points. u is known:
# exp(-pi^2 t / 10) sin(pi x).
use nn

model pinn(hidden = 24, rate = 5e-3, steps = 600) {
  input point : f32[B, 2]              # x and t, from 0 to 1

  x, t = [point[:, 0], point[:, 1]]
  net  = nn.mlp(stack([x, t], 1), [hidden, hidden], activation = tanh)
  u    = sin(pi * x) + t * x * (1 - x) * squeeze(nn.dense(net, 1), 1)

  u_t, u_x = gradient(sum(u), [t, x])
  u_xx     = gradient(sum(u_x), x)
  equation = u_t - 0.1 * u_xx
  truth    = exp(-0.1 * pi ^ 2 * t) * sin(pi * x)

  train   residual = mean(square(equation)) with adam(rate = cosine_decay(rate, steps))
  metric  error    = sqrt(mean(square(u - truth)))
  predict heat     = u
  predict flow     = -0.1 * u_x

  data train { point = "data/points.csv" }
  data test  { point = "data/points.csv" }
}

# SPDX-License-Identifier: Apache-2.0

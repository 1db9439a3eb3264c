# Rows, for XLA: what each of several towers is given, draws, counts and gives.

model drawn {
  input text : u8[B, 2, 2]
  input y : f32[B, 3]
  var w : f32[4, 3] = glorot_uniform()
  x = cast(flatten(text), f32) / 255 + random_uniform(f32[B, 4], -1, 1)
  place = cast(iota(i32[B]), f32)
  h = tanh(x @ w) + 0.1 * random_normal(f32[B, 3]) + 0.01 * expand(place)
  train loss = mean(square(h - y)) with sgd(0.1)
  metric far = max(h)
  predict p = h
  predict best = cast(argmax(h, axis = 1), u8)
}

# Each row with every row of the batch.
model pairs {
  input x : f32[B, 4]
  var w : f32[4, 3] = glorot_uniform()
  h = dropout(x, 0.3) @ w
  alike = h @ transpose(h)
  train loss = mean(logsumexp(alike, axis = 1) - sum(h * h, axis = 1)) with sgd(0.1)
  predict p = h
}

# SPDX-License-Identifier: Apache-2.0

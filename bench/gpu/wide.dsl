# Four layers of 4096 units: matrix products and little else.
use nn

model wide(width = 4096, rate = 1e-3, precision = "f32") with precision = precision {
  input x      : f32[B, width]
  input target : f32[B, width]

  h1 = nn.dense(x, units = width, activation = relu)
  h2 = nn.dense(h1, units = width, activation = relu)
  h3 = nn.dense(h2, units = width, activation = relu)
  y  = nn.dense(h3, units = width)

  train mean(square(y - target)) with sgd(rate = rate)
}

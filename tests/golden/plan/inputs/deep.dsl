# Eight layers of 128 units.
use nn

model deep() {
  input x : f32[B, 128]
  input y : f32[B, 128]

  h1 = nn.dense(x, 128, activation = tanh)
  h2 = nn.dense(h1, 128, activation = tanh)
  h3 = nn.dense(h2, 128, activation = tanh)
  h4 = nn.dense(h3, 128, activation = tanh)
  h5 = nn.dense(h4, 128, activation = tanh)
  h6 = nn.dense(h5, 128, activation = tanh)
  h7 = nn.dense(h6, 128, activation = tanh)
  h8 = nn.dense(h7, 128)

  train mean(square(h8 - y)) with sgd(rate = 0.1)
}

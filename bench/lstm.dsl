# An LSTM of 128 units over 64 steps of 32 numbers.
use nn

model lstm(length = 64, width = 32, units = 128, rate = 0.01, precision = "f32") with precision = precision {
  input x     : f32[B, length, width]
  input label : i32[B]

  logits = nn.dense(nn.lstm(x, units), 10)

  train mean(softmax_cross_entropy(logits, label)) with sgd(rate = rate)
}

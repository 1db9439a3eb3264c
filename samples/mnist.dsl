# A perceptron with two hidden layers for the MNIST digits; the data is given on the command line.
use nn

model mnist(hidden = [256, 128], rate = 1e-3, drop = 0.2) {
  input image : u8[B, 28, 28]
  input label : u8[B]

  x      = flatten(cast(image, f32) / 255)
  h      = nn.mlp(x, hidden)
  logits = nn.dense(dropout(h, drop), units = 10)
  loss   = softmax_cross_entropy(logits, label)

  train   mean(loss) with adam(rate = rate)
  metric  accuracy    = mean(correct(logits, label))
  predict probability = softmax(logits)
}

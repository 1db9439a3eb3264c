# Four layers of 2048: a step computes much, and its gradients are 57 MB.
use nn

model wide(width = 2048, rate = 1e-3) {
  input image : f32[B, 784]
  input label : i32[B]

  h1     = nn.dense(image, units = width, activation = relu)
  h2     = nn.dense(h1, units = width, activation = relu)
  h3     = nn.dense(h2, units = width, activation = relu)
  h4     = nn.dense(h3, units = width, activation = relu)
  logits = nn.dense(h4, units = 10)

  train   mean(softmax_cross_entropy(logits, label)) with sgd(rate = rate)
  predict probability = softmax(logits)
}

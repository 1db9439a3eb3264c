# The mean of 44 rows of a table: a step changes those rows.
use nn

model bag(width = 64, rate = 2.0) {
  input ids   : i32[B, 44]
  input label : i32[B]

  logits = nn.dense(mean(nn.embedding(ids, 65536, width), axis = 1), units = 3)

  train mean(softmax_cross_entropy(logits, label)) with sgd(rate = rate)
}

# Sequences of no steps and rows of no elements still have the batch's rows: products, einsum and layers over sequences of them.
# RUN: %dgc check %s 2>&1 | %FileCheck %s --implicit-check-not=error
# RUN: %dgc compile %s --entry train --batch 6 --devices cpu:0-2 --verify-each --emit placed 2>&1 | %FileCheck %s --check-prefix=PLACED
# CHECK: ok
# PLACED: graph nothing.train
use nn
model nothing() {
  input x : f32[B, 0, 4]
  var w : f32[4, 3] = glorot_uniform()
  product = x @ w
  summed = einsum("bik,kj->bij", x, w)
  part = transpose(x) @ product
  all_h = []
  for cell in [nn.rnn, nn.gru, nn.lstm] {
    all_h = all_h + [cell(x, 3, sequence = true)]
  }
  both = nn.stacked(x, [3, 2], cell = nn.bidirectional, sequence = true)
  last = nn.lstm(x, 3)
  given = concat([product, summed, ...all_h, both], axis = 2)
  train sum(given) + sum(part) + sum(last) with sgd(0.1)
  predict given = given
  predict last = last
}

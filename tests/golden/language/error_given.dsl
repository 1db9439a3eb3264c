# An error inside the library says once for each call what that was given, and not what follows from it.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
model given() {
  input x : f32[B, 28, 28]
  input label : u8[B]
  input row : f32[B]
  input table : f32[B, 4]
  z = nn.dense(x, 10)
  a = softmax_cross_entropy(z, label)
  b = nn.dense(row, 3)
  c = sigmoid_cross_entropy(table, label)
  d = sigmoid_cross_entropy(table, 1.0)
  e = row * table
  f = table.view(3)
  g = momentum
  train a_loss = mean(table) with sgd(0.1, momentum = 0.9)
  train b_loss = mean(table) with [clip_grad_norm_(1.0), sgd(0.1)]
  opt = sgd(0.1)
  train c_loss = mean(table) with opt
}
# CHECK: :10:29: error: `softmax_cross_entropy` takes logits [..., classes] and the numbers of classes [...], not f32[B,28,10] and u8[B]
# CHECK: :9:3: note: `z` is f32[B,28,10]
# CHECK: :6:9: note: `label` is u8[B]
# CHECK: help: a label is that of one vector of logits: `mean(x, axis = 1)` before the last layer
# CHECK-NOT: help:
# CHECK: :11:7: error: a variable cannot depend on the batch: f32[B,3]
# CHECK: :7:9: note: `row` is f32[B]
# CHECK-NEXT: input row
# CHECK-NEXT: ^~
# CHECK-NEXT: help: of what is one number of each row, f32[B], `expand(x, 1)` makes f32[B,1]
# CHECK-NEXT: :12:36: error: `label` of `sigmoid_cross_entropy` must be T[...], not u8[B]: T is f32 here
# CHECK: help: write `cast(label, f32)`
# CHECK: :13:36: error: `label` of `sigmoid_cross_entropy` must be T[...], not the number 1.0
# CHECK: help: write `broadcast(cast(1.0, f32), shape(x))`
# CHECK: :14:7: error: mul needs shapes that broadcast, not f32[B] and f32[B,4]
# CHECK: help: `expand(x, 1)` puts the one number of a row in f32[B] beside those in f32[B,4]
# CHECK: :15:7: error: only libraries have members, not f32[B,4]
# CHECK: help: it is written `reshape(x, shape)`
# CHECK: :17:44: error: optimizer `sgd` has no parameter `momentum`
# CHECK: help: it is written `momentum(rate, mu)`
# CHECK: :18:36: error: unknown function `clip_grad_norm_`
# CHECK: help: it is written `clip_by_global_norm(limit)`
# CHECK: :19:9: error: `sgd` is an optimizer: it stands behind `with`
# CHECK-NOT: it is an error

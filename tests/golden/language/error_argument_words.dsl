# The library's words for parameters by which advice is given, where no other test has them: `perm`, `scores`.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
model m {
  input x : f32[B, 4]
  input label : i32[B]
  a = nn.dense(x, 1)
  y = transpose(a, 1, 0)
  metric q = auc(label, reshape(a, [B]))
  train mean(a) with sgd(0.1)
}
# CHECK: :8:23: error: function `transpose` takes 2 arguments, not 3
# CHECK: help: the numbers of `perm` stand in a list: `[2, 3]`
# CHECK: :9:18: error: `scores` of `auc` are f32 or f64, not i32[B]
# CHECK: help: what the model says stands first: `auc(scores, label)`

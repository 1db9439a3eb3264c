# What lists of optimizers say of what cannot stand in them.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
optimizer wide() { return [1, 2] }
optimizer wrong() { return cast([1, 2, 3], f64) }
optimizer odd() { return [gradient, 1.0] }
optimizer swap() {
  var s : f64[7] = 0 replaces(variable)
  return gradient
}
model chain() {
  input x : f64[B, 2]
  state outside : f64[2] = 0 replaces(variable)
  var w : f64[2] = 1
  loss = mean(x * w)
  train a = loss with [clip_by_norm(1.0)]
  train b = loss with [sgd(0.1), sgd(0.1)]
  train c = loss with [freeze("*"), sgd()]
  train d = loss with [wrong(), sgd()]
  train e = loss with [wide(), sgd()]
  train f = loss with [odd(), sgd()]
  train g = loss with [freeze(3), sgd()]
  train h = loss with [swap(), sgd()]
  train i = loss with [loss, sgd()]
  train j = loss with clip_by_value(1.0)
  metric n = global_norm(w)
  metric m = global_norm([w, 2.0])
}
# CHECK: :12:30: error: only what an optimizer keeps replaces a variable: `replaces(variable)`
# CHECK: :15:23: error: none of these optimizers assigns `variable`, so `w` is not trained
# CHECK: help: what changes a gradient stands before an optimizer, as in `[clip_by_norm(1.0), adam()]`
# CHECK: :16:34: error: `w` is assigned twice in one step
# CHECK: :17:23: error: all variables that this loss depends on are left out
# CHECK: :18:24: error: `wrong` returns f64[3] in the place of the gradient by `w`, which is f64[2]
# CHECK: :19:24: error: `wide` returns a list that is not [gradient, when] or [gradient, when, step]
# CHECK: help: `when` is a scalar of bool, `step` of i64
# CHECK: :20:24: error: `odd` returns a list that is not [gradient, when] or [gradient, when, step]
# CHECK: :21:24: error: a pattern must be a string, not the number 3
# CHECK: :7:3: error: `w.swap.s` cannot replace `w`: its type is another
# CHECK: :23:24: error: `loss` is not a function: it is f64[]
# CHECK: :24:23: error: optimizer `clip_by_value` does not assign `variable`, so `w` is not trained
# CHECK: :25:26: error: a global norm is that of a list of tensors, not of f64[2]
# CHECK: :26:30: error: what a norm is taken of must be a tensor, not the number 2.0

# Commas and brackets that are missing; a loss that is to be trained, without the word.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
# RUN: %not %dgc check %S/inputs/batch_parameter.dsl 2>&1 | %FileCheck %s --check-prefix BATCH
use nn
function f(a = 1, b = 2) { return a + b }
function g(a = 1 b = 2) { return a }
model separators() {
  input x : f32[B 4]
  a = nn.dense(x 3)
  b = f(a = 1 b = 2)
  c = cast([1.0 2.0], f32)
  d = f(1
    2)
  e = relu nn.dense(x, 3)
  h = 2 * nn.silu tanh(x)  # both
  loss = mean(square(a)) with adam()
  l = (x is c)
}
# CHECK: :6:18: error: unexpected `b` before `)`
# CHECK: help: a comma stands between two: write one before `b`
# CHECK: :8:19: error: unexpected `4` before `]`
# CHECK: help: a comma stands between two: write one before `4`
# CHECK: :9:18: error:
# CHECK: help: a comma stands between two: write one before `3`
# CHECK: :10:15: error:
# CHECK: help: a comma stands between two: write one before `b`
# CHECK: :11:17: error:
# CHECK: help: a comma stands between two: write one before `2.0`
# CHECK: :13:5: error: unexpected `2` before `)`
# CHECK: help: a comma stands between two: write one before `2`
# CHECK: :14:12: error: unexpected `nn`
# CHECK-NOT: did you mean `in`
# CHECK: help: what a function is called with stands in brackets: `relu(nn.dense(x, 3))`
# CHECK: :15:19: error: unexpected `tanh`
# CHECK: help: what a function is called with stands in brackets: `nn.silu(tanh(x))`
# CHECK: :16:26: error: unexpected `with`
# CHECK: help: what is trained begins with `train`: `train loss = ... with adam(1e-3)`
# CHECK: :17:10: error: unexpected `is` before `)`
# CHECK-NOT: a comma
# CHECK: help: values are compared by `==` and `!=`
# BATCH: error: an input begins with the batch axis B, not f32[32,24]
# BATCH: help: `B` is here a parameter or a value: leave that out, and `B` is the batch, of which `--batch 32` says the size

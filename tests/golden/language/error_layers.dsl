# What is wrong with a layer that is made, or with a call of it.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn

layer counted(x) {
  state n : f32 = 0 aggregation(sum)
  n += sum(x)
  return x
}

model m() {
  input x : f32[B, 4]
  d = nn.dense.new(3)
  # CHECK: [[#@LINE+1]]:7: error: `d` has not been called, and its variables are made by its first call
  q = d.kernel
  a = d(x)
  # CHECK: [[#@LINE+1]]:7: error: `d.kernel` is f32[3,3] in this call, and f32[4,3] in the calls before it
  b = d(a)
  # CHECK: [[#@LINE+2]]:7: error: `d` has no variable `kernl`
  # CHECK: help: it has kernel, bias
  e = d.kernl
  # CHECK: [[#@LINE+2]]:7: error: only libraries have members, not layer dense
  # CHECK: help: `new` makes a layer where it is called: `dense.new(...)`
  f = nn.dense.new
  # CHECK: [[#@LINE+1]]:7: error: `new` makes a layer, and `relu` is a function
  g = relu.new(3)
  # CHECK: [[#@LINE+1]]:7: error: `new` makes a layer, and `adam` is an optimizer
  h = adam.new(3)
  # CHECK: [[#@LINE+2]]:7: error: layer `dense` needs `x`
  # CHECK: help: `dense.new(...)` makes a layer that is called later, as often as it is needed
  i = nn.dense(units = 3)
  # CHECK: error: `units` of `dense` was given when the layer was made
  j = d(x, units = 4)
  # CHECK: error: `+` does not work on the layer d and the number 1
  k = d + 1
  # CHECK: error: layer `dense` needs `units`
  l = nn.dense.new()
  n = l(x)
  # CHECK: error: a layer has parts by the number of a trip, as in `d[0]`
  o = d[0:1]
  # CHECK: error: `c.n` is assigned twice in one step
  c = counted.new()
  p = c(x) + c(x)
  # CHECK: error: `over` takes trained variables or paths to them, not the layer l
  train mean(a) with sgd() over l
}

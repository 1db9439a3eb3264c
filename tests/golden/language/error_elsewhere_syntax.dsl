# Lines that other languages have: what to write here.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model m() {
  input x : f32[B, 4]
  # CHECK: [[#@LINE+2]]:24: error: unexpected `:` before `)`
  # CHECK: help: an argument is given by name as `name = value`
  a = nn.dense(x, units: 3)
  # CHECK: [[#@LINE+2]]:20: error: unexpected `,` before `)`
  # CHECK: help: a list stands in `[ ]`
  b = reshape(x, (B, 4))
  one = x + 1
  # CHECK: [[#@LINE+2]]:5: error: unexpected `:`
  # CHECK: help: write `c = value`
  c := x
  two = x + 2
  # CHECK: [[#@LINE+2]]:5: error: unexpected `:`
  # CHECK: help: write `d = value`
  d : f32[B, 4] = x
  three = x + 3
  # CHECK: [[#@LINE+2]]:17: error: unexpected end of the line, expected `=`
  # CHECK: help: a variable has a type and a first value: `var w : f32[3] = zeros()`
  var e : f32[4]
  # CHECK: [[#@LINE+2]]:9: error: unexpected `=`, expected `:`
  # CHECK: help: a variable has a type and a first value: `var w : f32[3] = zeros()`
  var f = zeros()
  # CHECK: [[#@LINE+2]]:18: error: unexpected `(`
  # CHECK: help: its name stands before its value: `metric name = value`
  metric accuracy(x)
  # CHECK: [[#@LINE+2]]:18: error: unexpected `(`
  # CHECK: help: its name stands before its value: `predict name = value`
  predict softmax(x)
  # CHECK: [[#@LINE+2]]:16: error: unexpected end of the line, expected `with`
  # CHECK: help: an optimizer stands behind the loss: `train loss with adam(1e-3)`
  train mean(x)
  four = x + 4
  # CHECK: [[#@LINE+2]]:18: error: unexpected `for` before `]`
  # CHECK: help: a list grows in a loop
  items = [x * i for i in 0..3]
  # CHECK: [[#@LINE+2]]:24: error: unexpected `,` before `)`
  # CHECK: help: a statement declares it: `input x : f32[B, 28]`
  h = Input(shape = (28,))
  # CHECK: [[#@LINE+2]]:11: error: a number with a point has digits on both sides of it
  # CHECK: help: write `255.0`
  i = x / 255.
  # CHECK: [[#@LINE+4]]:8: error: a number with a point
  # CHECK: help: write `1.0`
  # CHECK: error: a number with a point
  # CHECK: help: write `0.5`
  j = [1., .5]
  # CHECK: [[#@LINE+2]]:16: error: unexpected `:`, expected `{`
  # CHECK: help: what belongs to it stands in `{ }`: `for k in 0..3 {`, and `}` behind the last line
  for k in 0..3:
    five = x + k
  # CHECK: [[#@LINE+3]]:3: error: unexpected `layer`
  # CHECK-NOT: is a word of the language
  # CHECK: help: definitions stand beside each other: write it before the one that this is in
  layer g(z) {
    return z
  }
}
# CHECK: [[#@LINE+2]]:14: error: unexpected `:`, expected `with` or `{`
# CHECK: help: what belongs to it stands in `{ }`: `model other() {`, and `}` behind the last line
model other(): # as in Python

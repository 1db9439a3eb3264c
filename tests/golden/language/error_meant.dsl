# Lines that cannot be read, and what was meant by them; tests/unit/test_frontend.c ends a source in each.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
# CHECK: [[#@LINE+2]]:1: error: unexpected `@`
# CHECK: help: nothing stands before a definition: a model is compiled as a whole
@jit
function one() { return 1 }
# CHECK: [[#@LINE+2]]:15: error: unexpected `-`, expected `with` or `{`
# CHECK: help: what it gives is not said: `function f(x) { return ... }`
function f(x) -> f32[B] { return x }
function two() { return 2 }
# CHECK: [[#@LINE+2]]:1: error: unexpected `rate`
# CHECK: help: values stand in a model, a layer or a function
rate = 3
function three() { return 3 }
# CHECK: [[#@LINE+2]]:1: error: unexpected `class`
# CHECK: help: write `layer f(x) { ... }`, and `model m { ... }` for what is trained
class M
function four() { return 4 }
model m() {
  # CHECK: [[#@LINE+2]]:11: error: unexpected `=`, expected `:`
  # CHECK: help: an input has a type: `input x : f32[B, 4]`
  input y = f32[B, 4]
  input x : f32[B, 4]
  if 1 > 2 {
    a = x
  }
  # CHECK: [[#@LINE+2]]:3: error: unexpected `else`
  # CHECK: help: it stands behind the end of what belongs to its `if`: `} else {`
  else:
  # CHECK: [[#@LINE+2]]:20: error: unexpected `:`
  # CHECK: help: what belongs to it stands in `{ }`: `} else {`
  if 1 > 2 { } else:
  # CHECK: [[#@LINE+2]]:16: error: unexpected `elif`
  # CHECK: help: write `} else if c {`
  if 1 > 2 { } elif 2 > 3 { }
  # CHECK: [[#@LINE+2]]:8: error: unexpected `2`
  # CHECK: help: write `} else if c {`
  elif 2 > 3:
  # CHECK: [[#@LINE+3]]:4: error: unexpected `+`
  # CHECK-NEXT: i++
  # CHECK: help: write `i = i + 1`
  i++
  # CHECK: help: write `rate = rate - 0.5`
  rate -= 0.5  # less
  # CHECK: help: write `y = y ^ 2`
  y **= 2
  # CHECK: help: write `y = y * value`
  y *= exp(x) + exp(x) + exp(x) + exp(x) + exp(x) + exp(x) + exp(x) + exp(x)
  # CHECK: help: write `y = y / value`
  y /=
  # CHECK: [[#@LINE+2]]:4: error: unexpected `[`
  # CHECK: help: elements are not assigned: `select(c, a, b)` chooses among two
  x[0] = 1
  # CHECK: [[#@LINE+2]]:13: error: unexpected `.`
  # CHECK: help: `train loss with adam(1e-3)` says all of it
  optimiser1.step()
  # CHECK: [[#@LINE+2]]:3: error: unexpected `optimizer`
  # CHECK-NEXT: optimizer.zero_grad()
  optimizer.zero_grad()
  # CHECK: help: `train loss with adam(1e-3)` says all of it
  # CHECK: [[#@LINE+2]]:3: error: unexpected `model`
  # CHECK: help: `train loss with adam(1e-3)` says all of it
  model.compile(loss = 3)
  # CHECK: [[#@LINE+2]]:4: error: unexpected `.`
  # CHECK: help: what is trained says the optimizer
  d.trainable = False
  # CHECK: help: names need no `self`: `fc = nn.dense(x, 4)`
  self.fc = nn.dense(x, 4)
}

# Lines of other languages and forgotten words, that cannot be read: each says what to write, and what follows from one is not told.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
layer block(x, units) {
  # CHECK: error: unexpected `/` before `]`
  # CHECK: help: integers that divide are `a / b`; `floor_div(a, b)` of tensors rounds down
  head = [2, units // 2]
  # CHECK: [[#@LINE+2]]:5: error: unexpected `.`
  # CHECK: help: a value is bound, `x = f(x)`, or given back, `return f(x)`
  nn.dense(x, units)
  # CHECK: [[#@LINE+2]]:7: error: unexpected `(`
  # CHECK: help: a value is bound, `x = f(x)`, or given back, `return f(x)`
  show(x)
}
model m() {
  input x : f32[B, 4]
  # CHECK: error: unexpected `in`, expected `over`, `{` or `,`
  # CHECK: help: what is carried stands before `over`: `scan h over x_t in x { }`
  ys = scan x in noise { return x }
  # CHECK: error: unexpected `accuracy`
  # CHECK: help: did you mean `metric`?
  metrics accuracy = mean(x)
  # CHECK: error: unexpected `y`
  # CHECK: help: did you mean `predict`?
  predicts y = x
  # CHECK: [[#@LINE+2]]:17: error: unexpected `:`, expected `{`
  # CHECK: help: what belongs to it stands in `{ }`: `if rate > 0.05 { ... }`, and the same behind `else`
  if rate > 0.05: h = x
  # CHECK: error: unexpected `with`
  # CHECK: help: the loss stands between them: `train loss with adam(1e-3)`
  train with adam()
  # CHECK: error: unexpected `optimizer`
  # CHECK: help: the optimizer stands behind the loss: `train loss with adam(1e-3)`
  optimizer = adam(1e-3)
  # CHECK: error: unexpected string, expected a name or `}`
  # CHECK: help: the file of each input: `data train { x = "x.npy" }`
  data train { "x.npy" }
  # CHECK: error: unexpected `:`, expected `=`
  # CHECK: help: the file of each input: `data train { x = "x.npy" }`
  data train { x: "x.npy" }
  # CHECK: error: unexpected `{`, expected a name or `train`
  # CHECK: help: the file of each input: `data train { x = "x.npy" }`
  data { x = "x.npy" }
  # CHECK: [[#@LINE+4]]:16: error: unexpected end of the line
  # CHECK: [[#@LINE+4]]:5: error: unexpected `with`
  # CHECK: help: it stands on the line of its `train`, which goes on inside of brackets: `train loss with [...]`
  # CHECK-NOT: error:
  train mean(x)
    with [clip_by_norm(1.0),
          adamw(warmup(1e-3, 10), decay = 0.1)]
}

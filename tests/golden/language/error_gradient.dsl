# What gradient(y, x) says of operands that do not fit, and where nothing flows back.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
optimizer twice(rate) { variable <- variable - rate * gradient(sum(square(gradient)), variable) }
model gradients() {
  input x : f64[B, 3]
  input k : i32[B]
  var w : f64[3, 4] = normal(0.5)
  y = x @ w
  a = gradient(y, x)
  b = gradient(w, x)
  c = gradient(sum(k), w)
  d = gradient(mean(y), k)
  e = gradient(mean(y), [x, 3.0])
  f = gradient(mean(y), cast([1, 2], f64))
  g = gradient(mean(floor(y)), x)
  h = gradient(mean(y), [w, floor(x)])
  i = gradient(3, x)
  train mean(y) with twice(0.1)
  predict p = a + b + c + d + e + f + g + h[1] + i
}
# CHECK: :9:16: error: a gradient is of one number, not of f64[B,4]: sum it
# CHECK: :8:3: note: `y` is f64[B,4]
# CHECK: help: write `gradient(sum(y), x)`: it has for each row the gradient of its own, unless others depend on the row, too
# CHECK: :10:16: error: a gradient is of one number, not of f64[3,4]: sum it
# CHECK: help: write `gradient(sum(w), x)`
# CHECK: :11:16: error: a gradient is of a number of f32 or f64, not of i32[]
# CHECK: :12:25: error: a gradient is by values of f32 or f64, not by i32[B]
# CHECK: :6:9: note: `k` is i32[B]
# CHECK: :13:29: error: `x` of a gradient must be a tensor, not the number 3.0
# CHECK: :14:25: error: a gradient cannot be by a constant
# CHECK: help: equal constants are one value of the graph: declare this one as a `state`
# CHECK: :15:7: warning: this gradient is 0 everywhere: nothing flows back to `x`
# CHECK: :16:7: warning: this gradient is 0 everywhere: nothing flows back to `{{.*}}floor{{.*}}`
# CHECK: :17:16: error: `y` of a gradient must be a tensor, not the number 3
# CHECK: :3:{{.*}}: error: an optimizer's `gradient` cannot be differentiated once more
# CHECK: help: `gradient(loss, x)` in the model can

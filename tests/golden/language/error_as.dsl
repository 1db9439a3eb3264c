# A value that is named behind it, as Python does.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model named() {
  input x : f32[B]
  var w : f32 = 1
  train mean(square(x * w)) as loss with sgd(0.1) # as everywhere
  metric mean(x, axis = 0) as m
  predict x as p  on "/cpu:0"
  predict y = x as p
  train mean(square(x * w + 0.123456789 + 0.123456789 + 0.123456789 + 0.123456789 + 0.123456789)) as long with sgd(0.1)
}
# CHECK: :6:29: error: unexpected `as`, expected `with`
# CHECK: help: its name stands before its value: `train loss = mean(square(x * w)) with sgd(0.1)`
# CHECK: :7:14: error: unexpected `(`, expected `=`
# CHECK: help: its name stands before its value: `metric m = mean(x, axis = 0)`
# CHECK: :8:13: error: unexpected `as`, expected `=`
# CHECK: help: its name stands before its value: `predict p = x  on "/cpu:0"`
# CHECK: :9:17: error: unexpected `as`
# CHECK-NOT: help
# CHECK: :10:99: error: unexpected `as`, expected `with`
# CHECK: help: its name stands before its value: `train long = value`

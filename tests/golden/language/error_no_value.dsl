# A line that ends with `=` or an operator goes on in the next one: that it has no value is said of that line.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
function f(x) {
  y =
}
function g(x) {
  # CHECK: [[#@LINE-2]]:1: error: unexpected `}`
  # CHECK-NEXT: }
  # CHECK-NEXT: ^
  # CHECK-NEXT: help: there is no value behind `y =` of the line before
  y =  # later

  # a comment
  z = 3
  # CHECK: [[#@LINE-1]]:5: error: unexpected `=`
  # CHECK: help: there is no value behind `y =` of the line before
  return x
}
function h(x) {
  y = x +
  return x
  # CHECK: [[#@LINE-1]]:3: error: unexpected `return`
  # CHECK: help: there is no value behind `y = x +` of the line before
}
function i(x) {
  if true {
    y = true and not
  }
  # CHECK: [[#@LINE-1]]:3: error: unexpected `}`
  # CHECK: help: there is no value behind `y = true and not` of the line before
  return x
}
model m {
  input x : f32[B]
  predict y = x
}
}
# CHECK: [[#@LINE-1]]:1: error: unexpected `}`
# CHECK: help: no `{` is open here

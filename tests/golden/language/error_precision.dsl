# What is no precision, and what has none.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
layer setting(x) with speed = 3 {
  return x
}
model wrong(scale = 1) {
  input x : f64[B, 3]
  a = setting(x)
  b = matmul(x, cast(iota(i32[3, 3]), f64), precision = bf16)
  c = matmul(x, cast(iota(i32[3, 3]), f64), precision = f64)
  predict p = a + b + c
}
# CHECK: :3:23: error: `with` sets the precision of matrix products, not `speed`
# CHECK: help: write `with precision = bf16`
# CHECK: :9:7: error: a product of precision bf16 has operands of f32, not f64[B,3]
# CHECK: :10:57: error: a precision is bf16 or f32, not

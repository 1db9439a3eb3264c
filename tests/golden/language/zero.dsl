# Division of a tensor by what is written as 0 is told of once; what a parameter is may be 0.
# RUN: %dgc check %s 2>&1 | %FileCheck %s
layer half(x) { return x / 0.0 }
model zero(scale = 0) {
  input x : f32[B, 2]
  h = half(half(x))
  a = flatten(x) / 0
  b = x % 0
  c = cast(x, i32) / 0
  d = x / [1, 0]
  e = x / scale
  predict y = h + a + b + cast(c, f32) + d + e + 0 / (x + 1)
}
# CHECK-NOT: warning:
# CHECK: :3:28: warning: division by zero
# CHECK-NOT: warning:
# CHECK: :7:20: warning: division by zero
# CHECK: :8:11: warning: division by zero
# CHECK: :9:22: warning: division by zero
# CHECK-NOT: warning:

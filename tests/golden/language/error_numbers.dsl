# Numbers that do not fit: what would be infinite is said to be so, and not what is written as `inf`.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model numbers() {
  input x : f32[B, 2]
  var w : f32[2] = constant(1e40)
  a = x - [1, 1e39]
  b = x * -3.5e38
  c = cast(x, f64) * 1e39
  d = select(x > 3.4028235e38, inf, -inf)
  predict y = x
}
# CHECK: :5:20: error: 1e+40 does not fit into f32
# CHECK: :6:15: error: 1e+39 does not fit into f32
# CHECK: :7:11: error: -3.5e+38 does not fit into f32
# CHECK-NOT: error:

# Numbers that do not fit: what would be infinite is said to be so, and not what is written as `inf`; integers are exact,
# by whichever name their operation goes.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model numbers() {
  input x : f32[B, 2]
  var w : f32[2] = constant(1e40)
  a = x - [1, 1e39]
  b = x * -3.5e38
  c = cast(x, f64) * 1e39
  d = select(x > 3.4028235e38, inf, -inf)
  e = add(9223372036854775807, 1)
  f = sub(-9223372036854775807, 2)
  g = mul(4294967296, 4294967296)
  h = square(4294967296)
  i = -(-9223372036854775807 - 1)
  j = abs(-9223372036854775807 - 1)
  k = div(7, 2)
  l = mod(7, 0)
  m = [add(-3, 5), sub(3, 5), mul(-3, 5), div(-6, 2), mod(-7, 3), square(-3), neg(-3), abs(-3), abs(3)]
  if m != [2, -2, -15, -3, -1, 9, 3, 3, 3] { n = these }
  predict y = x
}
# CHECK: :6:20: error: 1e+40 does not fit into f32
# CHECK: :7:15: error: 1e+39 does not fit into f32
# CHECK: :8:11: error: -3.5e+38 does not fit into f32
# CHECK: :11:7: error: this number does not fit into 64 bits
# CHECK: :12:7: error: this number does not fit into 64 bits
# CHECK: :13:7: error: this number does not fit into 64 bits
# CHECK: :14:7: error: this number does not fit into 64 bits
# CHECK: :15:7: error: this number does not fit into 64 bits
# CHECK: :16:7: error: this number does not fit into 64 bits
# CHECK: :17:7: error: 7 is not divisible by 2
# CHECK: :18:7: error: division by zero
# CHECK-NOT: error:

# Integers that are divided, and then become floats: of bytes that is nearly nothing. What is said of a layer's input leads elsewhere.
# RUN: %dgc check %s 2>&1 | %FileCheck %s
# RUN: %not %dgc check %s --set inside=1 2>&1 | %FileCheck %s --check-prefix LAYER
use nn
model divided(inside = 0, range = 255) {
  input image : u8[B, 4]
  input n : i32[B, 4]
  if inside == 1 { predict z = nn.dense(image / 255, 3) }
  a = cast(image / 255, f32)
  c = cast(flatten(image / range), f32)
  d = cast(n / 10, f64)
  e = cast(flatten(image / 2)[:, 0], f32)
  f = cast(floor_div(n, 10), f32)
  g = cast(image, f32) / 255
  h = image / 2 + cast(n / 255, u8)
  predict y = a[:, 0] + cast(d, f32)[:, 0] + e + f[:, 0] + g[:, 0] + cast(h, f32)[:, 0] + c[:, 0]
}
# LAYER: error: a trained variable must be f32 or f64, not u8[4,3]
# LAYER: help: a layer's input can be converted first, as in `cast(x, f32)`, and then divided: `cast(x, f32) / 255`; what is
# CHECK: :9:12: warning: bytes are divided by 255 as integers: what is less becomes 0
# CHECK-NEXT: 9 | a = cast(image / 255, f32)
# CHECK: help: convert first: `cast(image, f32) / 255`
# CHECK-NOT: warning:
# CHECK: :10:20: warning: bytes are divided by 255
# CHECK-NOT: warning:
# CHECK: :11:12: warning: integers are divided here, and what is left over is lost before they become f64
# CHECK: help: convert first: `cast(x, f64) / y`; where whole numbers are meant, `floor_div(x, y)`
# CHECK-NOT: warning:
# CHECK: :12:20: warning: integers are divided here, and what is left over is lost before they become f32
# CHECK-NOT: warning:

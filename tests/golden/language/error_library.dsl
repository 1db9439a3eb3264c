# An error inside the standard library is shown where the user called it, and an endless recursion where it begins.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
layer even(x) { return odd(x) }
layer odd(x) { return even(x) }
layer wrap(x) { return softmax(x, axis = 5) }
model library() {
  input x : f32[B, 6, 6]
  input y : f32[B, 4]
  a = nn.attention(x, 4)
  b = wrap(y)
  c = even(y)
  d = one_hot(cast(y, i32), 4611686018427387904)
  predict p = a
}
# CHECK: error_library.dsl:10:7: error: 6 is not divisible by 4
# CHECK: nn.dsl:{{[0-9]+}}:{{[0-9]+}}: note: in the standard library here
# CHECK: error_library.dsl:6:24: error: there is no axis 5: the tensor has 2
# CHECK: error_library.dsl:11:7: note: in layer `wrap`, used here
# CHECK: error_library.dsl:12:7: error: layer `{{even|odd}}` calls itself without end: calls are nested more than 200 deep
# CHECK: error_library.dsl:13:7: error: an axis of 4611686018427387904 is too large

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
  t = y[:, 0]
  e = squared_error(nn.dense(y, 1), t)
  f = softmax_cross_entropy(y, t)
  g = softmax_cross_entropy(y, expand(t, 1))
  h = dropout(y, 50)
  i = nn.drop_path(y, 1)
  j = dropout(y, -0.1)
  k = auc(sigmoid(t), t, thresholds = 1)
  predict p = a
}
# CHECK: error_library.dsl:10:7: error: `K / heads` is no integer: 6 is not divisible by 4
# CHECK: nn.dsl:{{[0-9]+}}:{{[0-9]+}}: note: in the standard library here
# CHECK: error_library.dsl:6:24: error: there is no axis 5: the tensor has 2
# CHECK: error_library.dsl:11:7: note: in layer `wrap`, used here
# CHECK: error_library.dsl:12:7: error: layer `{{even|odd}}` calls itself without end: calls are nested more than 200 deep
# CHECK: error_library.dsl:13:7: error: an axis of 4611686018427387904 is too large
# CHECK: error_library.dsl:15:7: error: only one axis of f32[B,B] may depend on B
# CHECK: note: `x` is f32[B,1]
# CHECK: note: `t` is f32[B]
# CHECK: help: `squeeze(x, 1)` makes f32[B] of f32[B,1]
# CHECK: error_library.dsl:16:7: error: `label` of `class_numbers` must be integers, not f32[B]
# CHECK: help: write `cast(t, i32)`
# CHECK: error_library.dsl:17:7: error: `label` of `cross_entropy_of_shares` must be T[..., classes], not f32[B,1]
# CHECK: label : T[..., classes]) {  # class numbers are integers
# CHECK: error_library.dsl:18:18: error: `rate` of `dropout` must be fraction, not the number 50.0: it is at least 0 and less than 1
# CHECK: error_library.dsl:19:23: error: `rate` of `drop_path` must be fraction, not the number 1.0
# CHECK: error_library.dsl:20:18: error: `rate` of `dropout` must be fraction, not the number -0.1
# CHECK: error_library.dsl:21:39: error: `thresholds` of `auc` must be several, not the number 1: it is at least 2

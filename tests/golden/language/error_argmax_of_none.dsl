# An axis of no elements has none that is the greatest.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
# CHECK: error_argmax_of_none.dsl:7:15: error: an axis of no elements has no argmax: f32[B,3,0]
# CHECK: error_argmax_of_none.dsl:8:15: error: an axis of no elements has no argmin: f32[B,0]
model m {
  input x : f32[B, 3, 0]
  predict y = argmax(x, axis = 2)
  predict z = argmin(x[:, 0], axis = -1)
}

# Functions of order: what they are made of, and what they say of operands that do not fit.
# RUN: %dgc compile %s --batch 2 --emit graph | %FileCheck %s
# RUN: %not %dgc check %S/inputs/order_errors.dsl 2>&1 | %FileCheck %s --check-prefix=ERROR
model order() {
  input x : f32[B, 5]
  v, p = top_k(x, 3)
  predict v = v
  predict p = p
  predict s = sort(x, descending = true)
}
# CHECK: argsort x {axis=1, descending=1} : i32[B,5]
# CHECK: slice {{.*}} : i32[B,3]
# CHECK: take_along x, {{.*}} {axis=1} : f32[B,3]
# CHECK: take_along x, {{.*}} {axis=1} : f32[B,5]

# ERROR: order_errors.dsl:4:7: error: function `argsort` needs `axis`
# ERROR: note: its parameters: argsort(x, axis, descending = false)
# ERROR: order_errors.dsl:5:7: error: take_along needs places of an integer type, not f32[B,5]
# ERROR: order_errors.dsl:6:7: error: take_along along axis 1 needs places of the shape of f32[B,5] but for this axis, not i32[B]
# ERROR: order_errors.dsl:7:7: error: add_along to f32[B,5] needs values of f32[B,5], not i32[B,5]
# ERROR: order_errors.dsl:8:7: error: `descending` must be true or false, not the number 3
# ERROR-NOT: error:

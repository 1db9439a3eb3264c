# A list of numbers beside a tensor is a constant of its element type; alone it is none, and says how it becomes one.
# RUN: %dgc compile %s --emit graph --entry predict | %FileCheck %s
# RUN: %not %dgc check %S/inputs/list_errors.dsl 2>&1 | %FileCheck %s --check-prefix=ERROR
model lists() {
  input x : f32[B, 3]
  input n : i64[B, 2]
  predict less = x - [50, 3.5, 20]
  predict more = [[3, 4]] * n
  predict which = select([true, false, true], x, 0)
  predict is = x == [1, 2, 3]
  predict wide = broadcast(cast(1, f64), [B])               # a number that was cast has the type, too
  predict near = broadcast(cast(cast(16777217, f32), f64), [B])
}
# CHECK: less.constant = constant {value=[50.0, 3.5, 20.0]} : f32[3]
# CHECK: less = sub x, less.broadcast : f32[B,3]
# CHECK: constant {value=[3, 4]} : i64[2]
# CHECK: more = mul n, more.broadcast : i64[B,2]
# CHECK: constant {value=[true, false, true]} : bool[3]
# CHECK: which = select which.broadcast, x, {{.*}} : f32[B,3]
# CHECK: is.constant = constant {value=[1.0, 2.0, 3.0]} : f32[3]
# CHECK: is = eq x, is.broadcast : bool[B,3]
# CHECK: wide = broadcast {{.*}} : f64[B]
# CHECK: near.constant.{{.*}} = constant {value=16777216.0} : f64[]

# ERROR: :4:20: error: the number 1.5 cannot become i32
# ERROR: :5:15: error: sub needs shapes that broadcast, not f32[B,3] and f32[2]
# ERROR: :6:31: error: the lists of a tensor must have equal lengths
# ERROR: :7:20: error: f32[B,3] cannot become f32
# ERROR: help: tensors become one by `stack([...], axis)` or `concat([...], axis)`
# ERROR: :8:15: error: `*` does not work on the list [1, 2] and the list [3, 4]
# ERROR: help: numbers become a tensor by `cast([...], i32)`
# ERROR: :9:19: error: exp does not work on the list [1.0]
# ERROR: help: numbers become a tensor by `cast([...], f32)`
# ERROR: :10:22: error: each item must be a tensor, not the number 1.0
# ERROR: help: numbers become a tensor by `cast([...], f32)`
# ERROR: :11:19: error: the right side of `@` must be a tensor, not the list
# ERROR: help: numbers become a tensor by
# ERROR: :12:19: error: `constant` is an initializer: it can only give a variable its first value
# ERROR: help: elsewhere a number stands for itself, and numbers become a tensor by `cast([...], f32)`

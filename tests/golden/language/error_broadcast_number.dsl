# A number alone is f32 in `broadcast`: beside another type the help says what is of that, and of what has a name, what to cast.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
# RUN: %dgc check %S/inputs/broadcast_number.dsl
model m {
  input n : i32[B]
  input w : f64[B]
  input x : f32[B]
  input known : bool[B]
  input small : u8[B]
  a = broadcast(1, [B])
  # CHECK: error: add needs operands of one type, not i32[B] and f32[B]
  # CHECK: help: a number alone is f32 in `broadcast`: write `broadcast(cast(1, i32), shape)`
  predict p = n + a
  # CHECK: help: a number alone is f32 in `broadcast`: write `broadcast(cast(0.5, f64), shape)`
  predict q = w * broadcast(0.5, [B])
  # CHECK: error: i32[B] and f32[B] do not fit together
  # CHECK: help: a number alone is f32 in `broadcast`: write `broadcast(cast(2, i32), shape)`
  predict r = stack([n, broadcast(2, [B])], axis = 1)
  # CHECK: error: add needs operands of one type, not i32[B] and f32[B]
  # CHECK: help: types are never converted silently: write `cast(n, f32)`
  predict s = n + broadcast(0.5, [B])
  # CHECK: help: types are never converted silently: write `cast(n, f32)`
  predict t = x * n
  # CHECK: help: types are never converted silently: write `cast(known, i32)`
  predict u = n + known
  # CHECK: help: types are never converted silently: write `cast(small, i32)`
  predict v = n + small
}

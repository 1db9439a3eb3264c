# What error_broadcast_number.dsl is told to write, in a model that is right.
model m {
  input n : i32[B]
  input w : f64[B]
  input x : f32[B]
  input known : bool[B]
  input small : u8[B]
  predict p = n + broadcast(cast(1, i32), [B])
  predict q = w * broadcast(cast(0.5, f64), [B])
  predict r = stack([n, broadcast(cast(2, i32), [B])], axis = 1)
  predict s = cast(n, f32) + broadcast(0.5, [B])
  predict t = x * cast(n, f32)
  predict u = n + cast(known, i32)
  predict v = n + cast(small, i32)
}

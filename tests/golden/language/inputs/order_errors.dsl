model order() {
  input x : f32[B, 5]
  input i : i32[B]
  a = argsort(x)
  b = take_along(x, x, 1)
  c = take_along(x, i, 1)
  d = add_along(x, argsort(x, 1), argsort(x, 1), 1)
  e = sort(x, descending = 3)
  predict p = x
}

model rows {
  input x : f32[B, 10]
  predict total = sum(x, 1)
}

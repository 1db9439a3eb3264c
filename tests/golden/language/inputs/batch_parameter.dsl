# Beside error_separators.dsl: a parameter that is called as the batch is.
model batch(B = 32) {
  input x : f32[B, 24]
  predict y = x
}

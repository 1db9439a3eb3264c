model annotated() {
  input x : f32[B, 4]
  var w : f32[4, 2] = ones()
  h = tanh(x @ w) on "/cpu:0"
  predict out = h
}

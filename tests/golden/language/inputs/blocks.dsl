use nn
layer twice(x : f32[..., K], units) {
  first = nn.dense(x, units)
  return nn.dense(first, units)
}

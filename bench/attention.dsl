# Attention alone: its gradients by q, k and v where `back`, else its value.
model attention(length = 64, heads = 8, size = 64, causal = false, back = true) {
  input q : f32[B, length, heads, size]
  input k : f32[B, length, heads, size]
  input v : f32[B, length, heads, size]
  var a : f32[heads, size] = ones()
  var b : f32[heads, size] = ones()
  var c : f32[heads, size] = ones()

  y = dot_product_attention(q * a, k * b, v * c, causal) if back else dot_product_attention(q, k, v, causal) * a
  train mean(y) with sgd(rate = 1e-3)
}

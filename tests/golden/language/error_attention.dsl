# What dot_product_attention refuses, and where.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s

model heads() {
  input q : f32[B, 5, 2, 4]
  input k : f32[B, 7, 2, 4]
  input m : bool[B, 2, 5, 7]
  input n : i32[B, 5, 2, 4]
  predict a = dot_product_attention(q, k, q)
  predict b = dot_product_attention(q, reshape(k, [B, 7, 4, 2]), k)
  predict c = dot_product_attention(q, k, k, mask = q)
  predict d = dot_product_attention(q, k, k, mask = m[:, :, :, 0:5])
  predict e = dot_product_attention(q, k, k, scale = k)
  predict f = dot_product_attention(q, k, k, causal = 1)
  predict g = dot_product_attention(n, n, n)
  predict h = dot_product_attention(reshape(q, [B, 5, 8]), k, k)
  predict i = dot_product_attention(transpose(q, [1, 0, 2, 3]), k, k)
  predict j = dot_product_attention(q, k, cast(k, f64))
  predict n1 = dot_product_attention(q, k, k, mask = cast(n[:, 0, 0, 0], i32))
  predict n2 = dot_product_attention(q, k, k, mask = k[:, :, 0, 0] > 0)
  predict n3 = dot_product_attention(q, k, k, mask = cast(m[:, 0, 0], u8))
  predict n4 = dot_product_attention(q, k, k, mask = lower(5, 7))
  predict n5 = dot_product_attention(q, k, k, mask = m[:, 0])
  predict n6 = dot_product_attention(q, k, k, mask = cast(m, i32))
  predict n7 = dot_product_attention(q, k, k, mask = k[:, :, 0, 0])
  predict l = dot_product_attention(cast(q, f64), cast(k, f64), cast(k, f64), precision = bf16)
}

# CHECK: error_attention.dsl:9:15: error: attention with q of f32[B,5,2,4] needs v of f32[B,7,2,4], not f32[B,5,2,4]
# CHECK: error_attention.dsl:10:15: error: attention with q of f32[B,5,2,4] needs k of f32[B,7,2,4], not f32[B,7,4,2]
# CHECK: error_attention.dsl:11:15: error: attention needs a mask of bool[B,2,5,7], of which any axis may be 1, not f32[B,5,2,4]
# CHECK: error_attention.dsl:12:15: error: attention needs a mask of bool[B,2,5,7], of which any axis may be 1, not bool[B,2,5,5]
# CHECK: error_attention.dsl:13:54: error: `scale` must be a number, not f32[B,7,2,4]
# CHECK: error_attention.dsl:14:55: error: `causal` must be true or false, not the number 1
# CHECK: error_attention.dsl:15:15: error: attention needs q of f32 or f64 as [B, length, heads, size], not i32[B,5,2,4]
# CHECK: error_attention.dsl:16:15: error: attention needs q of f32 or f64 as [B, length, heads, size], not f32[B,5,8]
# CHECK: error_attention.dsl:17:15: error: attention has the batch in the first axis alone, and q is f32[5,B,2,4]
# CHECK: error_attention.dsl:18:15: error: attention with q of f32[B,5,2,4] needs v of f32[B,7,2,4], not f64[B,7,2,4]
# CHECK: error_attention.dsl:19:16: error: attention needs a mask of bool[B,2,5,7], of which any axis may be 1, not i32[B]
# CHECK: help: of lengths n, i32[B], `nn.length_mask(n, 7)` is one
# CHECK: error_attention.dsl:20:16: error
# CHECK: help: of m, bool[B,7], `expand(expand(m, 1), 1)` is one
# CHECK: error_attention.dsl:21:16: error
# CHECK: help: of m, u8[B,7], `expand(expand(m != 0, 1), 1)` is one
# CHECK: error_attention.dsl:22:16: error
# CHECK: help: of m, bool[5,7], `expand(expand(m, 0), 0)` is one
# CHECK: error_attention.dsl:23:16: error
# CHECK: help: of m, bool[B,5,7], `expand(m, 1)` is one
# CHECK: error_attention.dsl:24:16: error
# CHECK: help: of m, i32[B,2,5,7], `m != 0` is one
# CHECK: error_attention.dsl:25:16: error: attention needs a mask of bool[B,2,5,7], of which any axis may be 1, not f32[B,7]
# CHECK-NOT: help:
# CHECK: error_attention.dsl:26:15: error: a product of precision bf16 has operands of f32, not f64[B,5,2,4]

# Of a product in a loop, of which a slice of columns alone is read, the others are not computed: what an input of the
# model is multiplied by has no gradient that flows back. Where both are read, as the gradient of u, all are.
# RUN: %dgc compile --emit fused --batch 8 --verify-each %s > %t.dg
# RUN: %FileCheck %s < %t.dg
# RUN: %dgc opt --passes= %t.dg | %golden %t.dg
# RUN: %dgc compile --emit fused --batch 8 --set precision=bf16 %s | %FileCheck --check-prefix=BF16 %s
# RUN: %dgc compile --emit fused --batch 8 --devices gpu:0 %s | %FileCheck --check-prefix=GPU %s
# RUN: %dgc compile --emit fused --batch 8 --set learns=1 %s | %FileCheck --check-prefix=BOTH %s

# CHECK:       [[S:h.last.grad.scan.slice]] = slice w {begin=[2, 0]} : f32[4,4]
# CHECK:       [[W:h.last.grad.scan.transpose]] = transpose [[S]]
# CHECK:       = scan {{.*}}, [[W]] {reverse=1
# CHECK:       [[P:[^ ]+]] = matmul {{[^ ]+}}, w : f32[8,4]
# CHECK:       value result_0 = [[P]]

# BF16:        [[S:h.last.grad.scan.slice.slice]] = slice w {begin=[2, 0]} : f32[4,4]
# BF16:        = cast [[S]] : bf16[4,4]
# BF16:        {reverse=1
# BF16:        matmul {{[^ ]+}}, {{[^ ]+}} {transpose_b=1} : f32[8,4]

# GPU:         = slice w {begin=[2, 0]} : f32[4,4]
# GPU:         matmul {{[^ ]+}}, w {transpose_b=1} : f32[8,4]

# BOTH-NOT:    = slice w
# BOTH:        {reverse=1
# BOTH:        matmul {{[^ ]+}}, w : f32[8,6]

model columns(learns = 0, precision = "f32") with precision = precision {
  input x : f32[B, 3, 2]
  var s : f32[2] = ones()
  var w : f32[6, 4] = glorot_uniform()
  u = x * s if learns == 1 else x
  h = broadcast(0.0, [B, 4])
  scan h over x_t in u {
    h = tanh(concat([x_t, h], axis = 1) @ w)
  }
  y = sum(square(h))
  train y with sgd(rate = 0.1)
  predict p = h
}

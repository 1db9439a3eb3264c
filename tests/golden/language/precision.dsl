# Products of bfloat16 values: by the call, by the layer, for all that a model calls. What is moved is rounded before,
# so that the product takes the transpose; gradients are rounded too.
# RUN: %dgc compile --emit ast %s | %FileCheck --check-prefix=AST %s
# RUN: %dgc compile --emit grad %s | %FileCheck %s
# RUN: %dgc compile --emit grad %s > %t.dg
# RUN: %dgc opt --passes= %t.dg | %golden %t.dg
# RUN: %dgc compile --emit plan --batch 4 %s | %FileCheck --check-prefix=PLAN %s
# RUN: %dgc compile --emit grad --set precision=f32 %s | %FileCheck --check-prefix=F32 %s
# RUN: %dgc verify --towers 2 --devices cpu:0-1 --numeric %s
use nn
# AST: layer plain(x) with precision = f32 {
# AST: model precise(precision = "bf16") with precision = precision {
layer plain(x) with precision=f32 {
  return nn.dense(x, units = 5)
}
model precise(precision = "bf16") with precision = precision {
  input x : f32[B, 6]
  input y : f32[B, 4]
  a = nn.dense(x, units = 5, use_bias = false)
  b = plain(a)
  var w : f32[4, 5] = glorot_uniform()
  c = b @ transpose(w)
  d = matmul(c, w, precision = f32)
  n = iota(i32[2, 2]) @ iota(i32[2, 2])
  loss = squared_error(d @ transpose(w), y) + cast(sum(n), f32)
  train mean(loss) with sgd(rate = 0.1)
}
# CHECK: a.round_bf16 = round_bf16 x : f32[B,6]
# CHECK: [[K:a.round_bf16.kernel]] = round_bf16 a.kernel : f32[6,5]
# CHECK: a = matmul a.round_bf16, [[K]] {precision="bf16"} : f32[B,5]
# CHECK: b.matmul = matmul a, b.kernel : f32[B,5]
# CHECK: [[W:c.round_bf16.w]] = round_bf16 w : f32[4,5]
# CHECK: c = matmul c.round_bf16, [[W]] {transpose_b=1, precision="bf16"} : f32[B,4]
# CHECK: d = matmul c, w : f32[B,5]
# CHECK: c.grad.round_bf16 = round_bf16 c.grad : f32[B,4]
# CHECK: b.grad = matmul c.grad.round_bf16, [[W]] {precision="bf16"} : f32[B,5]
# CHECK: matmul c.grad.round_bf16, c.round_bf16 {transpose_a=1, precision="bf16"} : f32[4,5]
# CHECK: a.kernel.grad = matmul a.round_bf16, a.grad.round_bf16 {transpose_a=1, precision="bf16"} : f32[6,5]
# PLAN: matmul a 4x5x6 bf16 :
# PLAN: matmul c 4x4x5 tb bf16 :
# PLAN: matmul d 4x5x4 :
# F32-NOT: bf16

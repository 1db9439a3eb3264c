# Values of one shape that load the same memory are one kernel, though none reads another: what each reads of it may be
# several ops away.
# RUN: %dgc compile %s --batch 8 --entry predict --emit plan --verify-each | %FileCheck %s
# CHECK:      kernel d {{k[0-9]+}} 512 : x@{{[0-9]+}}, y@[[Y:[0-9]+]] -> y@[[Y]], a@{{[0-9]+}}, b@{{[0-9]+$}}
# CHECK-NEXT: matmul e 8x64x64
# What is read before the others can be computed stays alone, and so does another shape (c).
# CHECK-NEXT: kernel f {{k[0-9]+}} 512 : e@{{[0-9]+}}, x@{{[0-9]+}} -> x@
# CHECK-NOT:  kernel
model m {
  input x : f32[B, 64]
  input y : f32[B, 64]
  var w : f32[64, 64] = zeros()
  a = tanh(x * 2.0) + y
  b = exp(sqrt(x) * 2.0)
  c = sqrt(x[:, 0:32])
  d = sin(x)
  e = d @ w
  f = cos(x) + e
  predict p = a @ w
  predict q = b @ w
  predict r = c @ w[0:32, :]
  predict s = f @ w
}

# What a concat alone reads is written into its part of it; short rows, and what others read, too, are copied.
# RUN: %dgc compile %s --batch 8 --entry predict --emit plan --verify-each | %FileCheck %s
# CHECK: kernel a k{{[0-9]+}} 8x32 {{.*}} -> wide@[[AT:[0-9]+]], both@{{[0-9]+$}}
# CHECK: kernel b k{{[0-9]+}} 8x16 {{.*}} -> wide@[[AT]]+128
# CHECK: kernel c {{.*}} -> c@
# CHECK: kernel wide k{{[0-9]+}} 8x32 : both@{{.*}} -> wide@[[AT]]+192
# CHECK-NEXT: kernel wide k{{[0-9]+}} 8x6 : c@{{.*}} -> wide@[[AT]]+320
# CHECK-NOT: kernel wide
# Parts that lie one behind the other are written by leaves, too.
# CHECK: kernel root {{.*}} -> rows@[[ROWS:[0-9]+]]+4096
# CHECK: matmul rows.matmul {{.*}} -> rows@[[ROWS]]{{$}}
# CHECK-NOT: kernel rows
model m {
  input x : f32[B, 32]
  var w : f32[32, 32] = zeros()
  both = exp(x)
  a    = tanh(x)
  b    = tanh(x[:, 0:16]) * 2.0
  c    = tanh(x[:, 0:6]) * 2.0
  wide = concat([a, b, both, c], axis = 1)
  root = sqrt(w)
  rows = concat([reshape(w @ w, [32, 4, 8]), reshape(root, [32, 4, 8])], axis = 0)
  predict p = wide * 2.0
  predict q = both * 3.0
  predict r = mean(rows) * x
}

# Variables that are stored in bf16 or f16 are so in fused graphs, with their copies on other devices and the rows that are looked up; who
# computes with them casts, and a product of bf16 reads them as they are. The first value and the update are cast as they are
# computed. What is rounded and read by kernels alone is so, too, what a plain product reads is not. Elsewhere all is f32.
# RUN: %dgc compile --emit fused --batch 8 --devices cpu:0-1 --strategy central_storage --verify-each %s > %t.dg
# RUN: %FileCheck %s < %t.dg
# RUN: %dgc opt --passes= %t.dg | %golden %t.dg
# RUN: %dgc compile --emit placed --batch 8 --devices cpu:0-1 --strategy central_storage %s | %FileCheck --check-prefix=PLACED %s
# RUN: %dgc verify --batch 8 --devices cpu:0-1 --strategy central_storage --numeric %s

# CHECK-DAG: table = variable {trainable=1, storage="bf16"} : bf16[5,4]
# CHECK-DAG: = gather table, {{.*}} : bf16[4,4]
# CHECK-DAG: v = variable {trainable=1, storage="f16"} : f16[3]
# CHECK-DAG: v.copy_1 = copy v {alias=1} : f16[3]
# CHECK-DAG: w.copy_1 = copy w {alias=1} : bf16[4,3]
# CHECK-DAG: {{^  y}} = matmul {{.*}}, w : f32[4,3]
# CHECK-DAG: z.mul.cast = output {{.*}} : bf16[4,3]
# CHECK-DAG: w.update = assign w, {{.*}} : bf16[4,3]
# CHECK-DAG: codes = variable {trainable=1, storage="f16"} : f16[5,4]
# CHECK-DAG: = gather codes, {{.*}} : f16[4,4]
# CHECK-DAG: u.mul.cast = output {{.*}} : f16[4,3]
# CHECK-DAG: v.update = assign v, {{.*}} : f16[3]
# PLACED-NOT: : {{b?}}f16
model linear {
  input id : u8[B]
  var table : f32[5, 4] = glorot_uniform() storage(bf16)
  var w     : f32[4, 3] = glorot_uniform() storage(bf16)
  var v     : f32[3]    = zeros() storage(f16)
  var codes : f32[5, 4] = glorot_uniform() storage(f16)
  y = matmul(lookup(table, id), w, precision = bf16)
  q = matmul(lookup(codes, id), w, precision = bf16)
  z = round_bf16(y * v)
  u = round_f16(q * q)
  train sum(square(z) * exp(z)) + sum(square(u) * exp(u)) with sgd(rate = 0.1)
  predict p = z
}

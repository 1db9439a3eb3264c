# A table in 16 bits whose update is linear in the gradient is changed on CPUs at the rows of the batch, where it lies: no temporary of
# 1000 x 16 numbers. What is looked up twice is added at once, so that a row is rounded once.
# RUN: %dgc compile --emit plan --batch 8 --verify-each %s | %FileCheck %s
# RUN: %dgc compile --emit plan --batch 8 --set storage=f16 %s | %FileCheck %s
# RUN: %dgc compile --emit fused --batch 8 %s | %FileCheck --check-prefix=FUSED %s
# RUN: %dgc compile --emit fused --batch 8 --devices cpu:0-1 --strategy mirrored %s > %t.dg
# RUN: %FileCheck --check-prefix=TOWERS %s < %t.dg
# RUN: %dgc opt --passes= %t.dg | %golden %t.dg
# RUN: %dgc verify --batch 8 --devices cpu:0-1 --numeric %s

# CHECK: 14 steps, {{[0-9][0-9][0-9][0-9]}} bytes of arena
# CHECK-NOT: 16000
# CHECK: scatter_add table.scatter_add 40 of 1000x16 : table@variable:0, {{.*}} -> table@variable:0
# CHECK-NOT: 16000
# FUSED: {{^ *}}[[IDS:[^ ]+]] = concat {{.*}} : i32[40]
# FUSED: {{^ *}}[[ROWS:[^ ]+]] = concat {{.*}} : f32[40,16]
# FUSED: table.scatter_add = scatter_add table, [[IDS]], [[ROWS]] : bf16[1000,16]
# FUSED: table.update = assign table, table.scatter_add : bf16[1000,16]
# TOWERS: table.update = assign table, table.scatter_add : bf16[1000,16]
# TOWERS: table.update/replica_1 = assign table/replica_1, table/replica_1.scatter_add : bf16[1000,16]
model bag(storage = bf16) {
  input id : i32[B, 4]
  input own : i32[B]
  var table : f32[1000, 16] = uniform() storage(storage)
  x = sum(lookup(table, id), axis = 1) * lookup(table, own)
  train mean(square(sum(x, axis = 1))) with sgd(0.1)
}

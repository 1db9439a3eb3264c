# What has the batch twice: the rows of all towers have the axis N, and each tower gathers them.
# RUN: %dgc compile --emit graph %s | %FileCheck %s
# RUN: %dgc compile --emit placed --batch 7 --devices cpu:0-2 --verify-each %s | %FileCheck --check-prefix=PLACED %s
# RUN: %dgc verify --numeric --batch 7 --devices cpu:0-2 %s | %FileCheck --check-prefix=VERIFY %s
# RUN: %dgc verify --numeric --batch 2 --devices cpu:0-2 %s | %FileCheck --check-prefix=VERIFY %s
# RUN: %dgc compile --emit placed --batch 7 --devices cpu:0-2 --stress roundtrip %s
model pairs() {
  input a : f32[B, 3]
  input id : i32[B]
  var w : f32[3, 2] = 1
  u = a @ w
  logits = u @ transpose(u)
  same = expand(id, 1) == all_gather(id)
  far = mean(sum(square(expand(u, 1) - all_gather(u)), axis = 2))
  mixed = softmax(logits) @ u
  flags = all_gather(id > 0)
  train mean(select(same, logits, 0)) + far + mean(mixed) + mean(cast(flags, f32)) / B with sgd()
  predict p = mixed
}
# CHECK: logits.scatter_add = scatter_add {{.*}} : f32[N,2]
# CHECK: logits = matmul u, logits.scatter_add {transpose_b=1} : f32[B,N]
# CHECK: same = eq {{.*}} : bool[B,N]
# CHECK: far.sub = sub {{.*}} : f32[B,N,2]
# CHECK: mixed = matmul mixed.lhs, logits.scatter_add : f32[B,2]
# CHECK: flags = cast {{.*}} : bool[N]
# PLACED: tower_1/logits = matmul {{.*}} : f32[2,7]
# PLACED: gradient_aggregating/logits.scatter_add = add {{.*}} : f32[7,2]
# PLACED: tower_1/{{.*}} = gather gradient_aggregating/logits.scatter_add{{.*}} : f32[2,2]
# VERIFY-NOT: breach
# VERIFY: pairs.train: 3 towers
# VERIFY: towers     ok
# VERIFY: gradients  ok
# VERIFY: numbers    ok

# Two results of one kernel, each written where it is joined with the other: between each other, but not over each other.
# RUN: %dgc compile %s --entry train --batch 3 --emit plan | %FileCheck %s
# RUN: %dgc bench %s --batch 3 --steps 1 --verify-each
# CHECK: kernel {{.*}} -> joined@{{[0-9]+}}+288, joined@
model parts {
  input x : f32[B, 72]
  var scale : f32[72] = 1
  tiled = concat([scale, scale], axis = 0)
  joined = concat([sin(x), cos(x)], axis = 1)
  train mean(square(joined @ expand(tiled, 1))) with sgd(0.1)
}

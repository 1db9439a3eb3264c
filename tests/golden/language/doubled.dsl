# What is looked at for a warning is not walked anew for each of its readers: 2^60 paths lead to x.
# RUN: %dgc check %s | %FileCheck %s
# CHECK: ok
model doubled {
  input x : f32[B]
  input y : i32[B]
  h = x
  for i in 0..60 { h = h + h }
  metric area = auc(h, y)
}

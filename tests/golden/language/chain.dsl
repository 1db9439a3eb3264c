# A list of optimizers: each runs for all variables before the next. Evaluation reads the averages, which begin as the
# variables do. One norm serves all; what is left out has no state, and no part in it.
# RUN: %dgc compile %s --emit graph | %FileCheck %s
# RUN: %dgc compile %s --emit graph --entry eval | %FileCheck --check-prefix=EVAL %s
# RUN: %dgc compile %s --emit graph --entry init | %FileCheck --check-prefix=INIT %s
# RUN: %dgc compile %s --emit ast | %FileCheck --check-prefix=AST %s
model chain() {
  input x : f64[B, 3]
  var w : f64[3, 1] = normal(0.5)
  var b : f64 = 1
  var kept : f64[3] = 2
  y = squeeze((x + kept) @ w, 1) + b
  train mean(square(y)) with [freeze(["k*", "none"]), clip_by_global_norm(1.0), accumulate(2), momentum(0.1), average(0.5)]
  metric size = sum(w)
}
# CHECK-NOT: kept.grad =
# CHECK: w.grad = gradient
# CHECK: b.grad = gradient
# CHECK: = sqrt
# CHECK-NOT: = sqrt
# CHECK: w.accumulate.total = variable {slot="w"}
# CHECK: select
# CHECK: w.average.mean = variable {slot="w"}
# CHECK-NOT: kept.momentum
# EVAL-NOT: {trainable=1} : f64[3,1]
# EVAL: kept = variable
# EVAL: matmul {{.*}}, w.average.mean
# EVAL: reduce_sum w.average.mean
# INIT: w.average.mean.update = assign w.average.mean, w.initial
# AST: with [freeze(["k*", "none"]), clip_by_global_norm(1.0), accumulate(2), momentum(0.1), average(0.5)]

# What metrics are made of, and the formulas.
# RUN: %dgc compile %s --entry eval --emit graph 2>&1 | %FileCheck %s --check-prefix=EVAL
# RUN: %dgc compile %s --entry metrics --emit graph 2>&1 | %FileCheck %s --check-prefix=FORMULA
# RUN: %dgc compile %s --entry eval --towers 2 --emit placed 2>&1 | %FileCheck %s --check-prefix=PLACED
# RUN: %dgc verify %s --towers 3
model metrics() {
  input x : f32[B, 4]
  var w : f32[4] = ones()
  y = sum(x * w, axis = 1)
  train total = mean(y) + sqrt(mean(square(y))) with sgd(rate = 0.1)
  train odd = mean(square(y - mean(y))) with sgd(rate = 0.1)
  metric most = 2 * max(y) - min(y)
  metric both = mean(y) * mean(y) + sum(square(w))
  metric plain = mean(y)
  metric fixed = 3.0
  metric near = round_bf16(mean(y)) / 2
}
# EVAL: :11:15: note: evaluation gives the mean of `odd` over the batches, which depends on their size
# EVAL: note: what it takes of a row depends on the other rows of the batch
# EVAL:      total total.reduce_sum
# EVAL-NEXT: total total.batch_size
# EVAL-NEXT: total total.reduce_sum.square
# EVAL-NEXT: metric odd = odd.mul / B
# EVAL-NEXT: maximum most.reduce_max
# EVAL-NEXT: minimum most.reduce_min
# EVAL-NEXT: same both.reduce_sum
# EVAL-NEXT: metric plain = total.reduce_sum / B
# EVAL-NEXT: same fixed.constant
# EVAL-NEXT: }

# FORMULA: graph metrics.metrics {
# FORMULA: total.reduce_sum = input : f64[]
# FORMULA: total.batch_size = input : f64[]
# FORMULA: total.div = div total.reduce_sum, total.batch_size : f64[]
# FORMULA: most.reduce_max = input : f64[]
# FORMULA: most.mul = mul {{.*}}most.reduce_max
# FORMULA: both.mul = mul total.div, total.div : f64[]
# FORMULA: both.reduce_sum = input : f64[]
# FORMULA: near.round_bf16.cast = cast total.div : f32[]
# FORMULA: near.round_bf16 = round_bf16 near.round_bf16.cast : f32[]
# FORMULA: near.round_bf16.cast.round_bf16 = cast near.round_bf16 : f64[]
# FORMULA: metric total
# FORMULA-NEXT: metric most = most.sub
# FORMULA-NEXT: metric both = both.add
# FORMULA-NEXT: metric fixed = fixed.constant
# FORMULA-NEXT: metric near = near.div
# FORMULA-NEXT: }

# PLACED: total total.reduce_sum = total.reduce_sum.all_reduce
# PLACED: maximum most.reduce_max = most.reduce_max.all_reduce

# Sums of integers are totals of i64, and a metric that divides such is told of, once: counts are integers, and a share is none.
# RUN: %dgc check %s 2>&1 | %FileCheck %s
# RUN: %dgc compile %s --entry eval --emit graph | %FileCheck %s --check-prefix=EVAL
# RUN: %dgc compile %s --entry metrics --emit graph | %FileCheck %s --check-prefix=FORMULA
model whole() {
  input hit : u8[B]
  input said : i32[B]
  metric hits = sum(said)
  metric share = sum(hit == 1) / B
  metric said = ratio(sum(said), sum(cast(hit, i32)))
  metric good = sum(cast(hit, f32)) / B
  metric mean = mean(said)
  metric half = ratio(sum(cast(hit, f32)), 2 * mean(said))
}
# CHECK-COUNT-1: :9:18: warning: a metric divides integers here, and what is left over is lost
# CHECK: help: of a share write `sum(cast(x, f32)) / ...`, or `mean(x)`
# CHECK: :10:17: warning: a metric divides integers here, and what is left over is lost
# CHECK-NOT: warning:
# EVAL: hits.cast = cast said : i64[B]
# EVAL: [[HITS:hits.reduce_sum.*]] = reduce_sum hits.cast {axes=[0]} : i64[]
# EVAL: total hits.reduce_sum = [[HITS]]
# FORMULA: hits.reduce_sum = input : i64[]
# FORMULA: metric hits

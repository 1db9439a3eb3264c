# A metric must add up over batches.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model metrics() {
  input x : f32[B, 4]
  metric a = sqrt(mean(x))
  metric b = x
  metric c = mean(x) * mean(x)
  metric d = sum(x)
  metric d = sum(x)
}
# CHECK: :5:14: error: a metric must end in a mean or a sum over the batch
# CHECK: :6:14: error: a metric is a scalar, not f32[B,4]
# CHECK: help: end it in `mean(...)` or `sum(...)`
# CHECK: :7:14: error: a metric must end in a mean or a sum over the batch
# CHECK: :9:14: error: two metrics are called `d`

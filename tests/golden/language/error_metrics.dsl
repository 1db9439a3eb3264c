# A metric is a function of sums over the rows: batches are evaluated one by one.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model metrics() {
  input x : f32[B, 4]
  input y : f32[B]
  metric a = mean(square(y - mean(y)))
  metric b = x
  metric c = mean(sort(y, axis = 0) * y)
  metric d = sum(x)
  metric d = sum(x)
  metric e = mean(mean(y) * y)
  metric f = prod(y)
  metric g = mean(cumsum(y, axis = 0))
  metric h = sqrt(cast(tower_id(), f32) + mean(y))
}
# CHECK: :6:14: error: a metric is a function of sums over the rows, and this one is not
# CHECK: :6:14: note: what it takes of a row depends on the other rows of the batch
# CHECK: help: batches are evaluated one by one: write it with sums, means, maxima and minima of what each row gives by itself
# CHECK: :7:14: error: a metric is a scalar, not f32[B,4]
# CHECK: help: end it in `mean(...)` or `sum(...)`
# CHECK: :8:14: error: a metric is a function of sums over the rows, and this one is not
# CHECK: :8:14: note: what it takes of a row depends on the other rows of the batch
# CHECK: :10:14: error: two metrics are called `d`
# CHECK: :11:14: error: a metric is a function of sums over the rows, and this one is not
# CHECK: :12:14: error: a metric is a function of sums over the rows, and this one is not
# CHECK: :12:14: note: it is no sum, mean, maximum or minimum over the rows
# CHECK: :13:14: error: a metric is a function of sums over the rows, and this one is not
# CHECK: :14:14: error: a metric is a function of sums over the rows, and this one is not
# CHECK: note: it is another one in each tower

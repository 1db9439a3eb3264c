# Where the batch stands twice and its rows cannot be told, or their number is not known.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model pairs() {
  input a : f32[B, 3]
  input y : f32[B]
  u = a @ ones_of(a)
  # CHECK: [[#@LINE+2]]:7: error: only one axis of f32[B,B] may depend on B
  # CHECK: help: each row meets all rows of the batch where one side has these: `expand(u, 1) - all_gather(v)`
  d = expand(y, 1) - y
  l = u @ transpose(u)
  # CHECK: [[#@LINE+2]]:7: error: add needs shapes that broadcast, not f32[B,N] and f32[B]
  # CHECK: help: each row meets all rows of the batch where one side has these
  e = l + y
  # CHECK: error: the batch axis cannot be cut
  f = l[:, 0:2]
  # CHECK: error: f32[B,N] cannot be padded by [0, 0] and [0, 1]
  g = pad(l, [0, 0], [0, 1])
  # CHECK: error: `N - 1` is not known when the model is compiled: N is how many rows the batch has
  h = shape(l)[1] - 1
  # CHECK: error: `B + N` is not known when the model is compiled
  i = shape(l)[0] + shape(l)[1]
  # CHECK: error: `all_gather` takes what has rows of the batch, not f32[N,3]
  j = all_gather(all_gather(a))
  # CHECK: error: the shape f32[N,N] is too large, or depends on B twice
  k = all_gather(a) @ transpose(all_gather(a))
  # CHECK: error: a variable cannot depend on the batch: f32[N]
  var m : f32[shape(l)[1]] = 0
  # CHECK: error: a metric is a function of sums over the rows, and this one is not
  metric o = mean(l)
  # CHECK: error: a row of a prediction has the same size in each batch, and N is how many rows that has: f32[B,N]
  predict p = l
}
function ones_of(a) { return broadcast(1.0, [3, 2]) }

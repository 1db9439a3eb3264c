# What gather and scatter_add say of operands that do not fit.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model rows() {
  input id : i32[B, 3]
  input x : f32[B]
  input y : f32[B, 4]
  var t : f32[10, 4] = zeros()
  var s : f32[] = zeros()
  a = gather(t, x)
  b = gather(s, id)
  c = gather(y, id)
  d = scatter_add(t, id, y)
  e = scatter_add(t > 0, id, 1)
  f = gather(t, [0, 10])
  g = gather(t, 1.5)
  predict p = gather(scatter_add(t, [1, 1], 2), id)
}
# CHECK: :9:7: error: `index` holds the numbers of rows, which are integers, not f32[B]
# CHECK: :5:9: note: `x` is f32[B]
# CHECK: help: write `cast(x, i32)`
# CHECK: :10:14: error: `table` must have rows, which f32[] has not
# CHECK: :11:14: error: `table` must have rows with numbers, which those of a batch have not: f32[B,4]
# CHECK: :12:7: error: scatter_add to f32[10,4] by i32[B,3] needs values of f32[B,3,4], not f32[B,4]
# CHECK: :13:7: error: scatter_add needs a number, not bool[10,4]
# CHECK: :14:7: error: there is no row 10 in f32[10,4]
# CHECK: :15:17: error: the number 1.5 cannot become i32
# CHECK-NOT: error:

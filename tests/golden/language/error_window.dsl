# What windows and pools refuse, and where.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
model windows() {
  input x : f32[B, 9, 9, 3]
  input y : f32[B]
  predict a = window_max(x, 0)
  predict b = window_max(x, [2, 2, 2])
  predict c = window_sum(x, 2, dilation = [1])
  predict d = window_max(x, 2, padding = "some")
  predict e = window_max(y, 2)
  predict f = window_max(transpose(x, [1, 0, 2, 3]), 2)
  predict g = window_sum(x == 0, 2)
  predict h = nn.max_pool3d(x)
  predict i = nn.mean_pool2d(x, 2, stride = 0)
}
model larger() {
  input x : f32[B, 3, 4, 2]
  input s : f32[B, 3, 2]
  input v : f32[B, 2, 2, 2, 2]
  input e : f32[B, 0, 4, 2]
  a = nn.conv2d(x, 8, size = 5, padding = "valid")
  b = nn.conv2d(x, 8, size = 3, padding = [[0, 0], [2, 2]], dilation = 2)
  c = nn.conv1d(s, 8, size = 4, padding = "valid")
  d = nn.conv3d(v, 8, padding = "valid")
  f = nn.depthwise(x, 1, size = 4, padding = "valid")
  g = nn.max_pool2d(x, 4)
  h = nn.mean_pool2d(x, [2, 5])
  i = nn.max_pool2d(e)
  j = [nn.conv2d(x, 8, size = 5), nn.conv2d(e, 8), nn.max_pool2d(x, 4, padding = "same"), nn.mean_pool2d(x, [3, 4])]
  k = [window_max(x, 4), window_sum(x, [1, 5]), conv(x, broadcast(1.0, [5, 5, 2, 1]))]
}
# CHECK: error_window.dsl:7:15: error: size takes numbers from 1 to 1099511627776, not 0
# CHECK: error_window.dsl:8:29: error: `size` needs 2 numbers, one for each spatial axis, not 3
# CHECK: error_window.dsl:9:43: error: `dilation` needs 2 numbers, one for each spatial axis, not 1
# CHECK: error_window.dsl:10:42: error: `padding` is "same", "valid", or a list of [before, behind]
# CHECK: error_window.dsl:11:26: error: window_max needs a tensor [B, ..., C] with one to three spatial axes, not f32[B]
# CHECK: error_window.dsl:12:15: error: window_max has the batch in the first axis alone, not f32[9,B,9,3]
# CHECK: error_window.dsl:13:15: error: window_sum needs a number, not bool[B,9,9,3]
# CHECK: error_window.dsl:14:29: error: `x` of `max_pool3d` must be T[N, D, H, W, C], not f32[B,9,9,3]
# CHECK: error_window.dsl:15:15: error: strides takes numbers from 1 to 1099511627776, not 0
# CHECK: in the standard library here
# CHECK: error_window.dsl:22:7: error: a window of 5 x 5 does not fit into an input of 3 x 4
# CHECK: note: `x` is f32[B,3,4,2]
# CHECK: help: write a smaller `size`, or `padding = "same"`
# CHECK: error_window.dsl:23:7: error: a window of 5 x 5 does not fit into an input of 3 x 8, its padding counted
# CHECK: help: write a smaller `size` or `dilation`, or `padding = "same"`
# CHECK: error_window.dsl:24:7: error: a window of 4 does not fit into an input of 3
# CHECK: error_window.dsl:25:7: error: a window of 3 x 3 x 3 does not fit into an input of 2 x 2 x 2
# CHECK: error_window.dsl:26:7: error: a window of 4 x 4 does not fit into an input of 3 x 4
# CHECK: error_window.dsl:27:7: error: a window of 4 x 4 does not fit into an input of 3 x 4
# CHECK: error_window.dsl:28:7: error: a window of 2 x 5 does not fit into an input of 3 x 4
# CHECK: error_window.dsl:29:7: error: a window of 2 x 2 does not fit into an input of 0 x 4
# CHECK-NOT: :30:{{.*}}error
# CHECK-NOT: :31:{{.*}}error

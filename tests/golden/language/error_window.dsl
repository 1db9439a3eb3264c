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

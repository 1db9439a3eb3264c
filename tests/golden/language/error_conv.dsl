# What convolutions say of operands and windows that do not fit: where it stands that is wrong.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model windows() {
  input x : f32[B, 8, 8, 2]
  input line : f32[B, 8]
  input wide : f32[B, 33554432, 2]
  input deep : f32[B, 2, 2, 2, 2, 2]
  var w : f32[3, 3, 2, 4] = zeros()
  var w4 : f32[1, 1, 1, 1, 2, 4] = zeros()
  var w1 : f32[3, 2, 4] = zeros()
  var h : f64[3, 3, 2, 4] = zeros()
  a = conv(x, w, strides = [1, 2, 3])
  b = conv(x, w, kernel_dilation = [1], padding = "same")
  c = conv(x, w, input_dilation = 1.5)
  d = conv(x, w, padding = "SAME")
  f = conv(x, w, groups = 3)
  g = conv(x, w, strides = 0)
  i = conv(line, w)
  j = conv(deep, w4)
  k = conv(x, h)
  l = conv(x, w, groups = [1, 2])
  m = conv(x, w, groups = -1)
  o = conv(x, w, strides = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  q = transposed_conv(x, w, [8, 8])
  r = transposed_conv(x, reshape(w, [3, 3, 4, 2]), [8])
  s = transposed_conv(x, reshape(w, [3, 3, 4, 2]), [8, 8])
  t = transposed_conv(x, reshape(w, [3, 3, 4, 2]), [8, -8], padding = "same")
  v = conv(x, w, kernel_dilation = -9223372036854775807, padding = "same")
  y = conv(wide, w1, input_dilation = 1099511627776, strides = 1099511627776)
  predict p = x
}
# CHECK: :12:28: error: `strides` needs 2 numbers, one for each spatial axis, not 3
# CHECK: :13:36: error: `kernel_dilation` needs 2 numbers, one for each spatial axis, not 1
# CHECK: :14:35: error: `input_dilation` must be an integer, or a list of one for each spatial axis, not the number 1.5
# CHECK: :15:28: error: `padding` is "same", "valid", or a list of [before, behind] for each of the 2 spatial axes, not the string "SAME"
# CHECK: :16:7: error: conv of 3 groups needs an input [N, ..., C] and a kernel [..., C / groups, F] of as many groups of filters: f32[B,8,8,2] and f32[3,3,2,4]
# CHECK: :17:7: error: strides takes numbers from 1 to 1099511627776, not 0
# CHECK: :18:7: error: a convolution needs tensors [B, ..., C] and [..., C, F] with equally many spatial axes, not f32[B,8] and f32[3,3,2,4]
# CHECK: :19:7: error: conv needs two operands of equal rank, from 3 to 5: f32[B,2,2,2,2,2] and f32[1,1,1,1,2,4]
# CHECK: :20:7: error: conv needs operands of one type, not f32[B,8,8,2] and f64[3,3,2,4]
# CHECK: help: types are never converted silently: write `cast(h, f32)`
# CHECK: :21:27: error: `groups` must be an integer, not the list [1, 2]
# CHECK: :22:7: error: groups is from 0 to 1099511627776, not -1
# CHECK: :23:28: error: `strides` must be a list of at most 8 integers, not the list [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
# CHECK: :24:7: error: conv of 1 group has no input of this size: f32[B,8,8,2] is not the output of one under the kernel f32[3,3,2,4]
# CHECK: :25:52: error: `size` needs 2 numbers, one for each spatial axis, not 1
# CHECK: :26:7: error: conv of 1 group has no input of this size: f32[B,8,8,2] is not the output of one under the kernel f32[3,3,4,2]
# CHECK: :27:7: error: size takes numbers from 0 to 1099511627776, not -8
# CHECK: :28:7: error: kernel_dilation takes numbers from 1 to 1099511627776, not -9223372036854775807
# CHECK: :29:7: error: conv has gaps so wide that its places cannot be numbered: take a smaller dilation
# CHECK-NOT: error:

# What is none is taken where that is the default, of what is built in, of the library, and of definitions here, and nowhere else.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s --implicit-check-not=error:
use nn

function typed(x : f32[...], n : int = 2, p : fraction = none) { return x * n if p == none else x * p }
function untyped(x, k = 1) { return x if k == none else x * k }
function follows(x, a : int = none, b : int = a) { return x if b == none else x * b }

model refused {
  input x : f32[B, 4]
  input picture : f32[B, 8, 8, 3]
  var w : f32[3, 3, 3, 2] = zeros()
  taken = typed(x) + typed(x, 2, none) + typed(x, p = none) + untyped(x, none) + follows(x) + follows(x, none)
  more = sum(x, none) + max(x, axis = none) + sum(variance(x, none)) + sum(transpose(x, none))
  y0 = typed(x, none)
  # CHECK: [[#@LINE-1]]:17: error: `n` of `typed` must be int, not none: its default is 2
  # CHECK: note: the parameter is declared here
  # CHECK: help: leave `n` out; none is taken where it is the default
  y1 = typed(none)
  # CHECK: [[#@LINE-1]]:14: error: `x` of `typed` must be f32[...], not none: it has no default
  y2 = follows(x, 1, none)
  # CHECK: [[#@LINE-1]]:22: error: `b` of `follows` must be int, not none: its default is a
  y3 = dropout(x, none)
  # CHECK: [[#@LINE-1]]:19: error: `rate` of `dropout` must be fraction, not none: its default is 0.5
  y4 = softmax(x, none)
  # CHECK: [[#@LINE-1]]:19: error: `axis` of `softmax` cannot be none: its default is -1
  # CHECK: help: leave `axis` out; none is taken where it is the default
  y5 = nn.conv2d(picture, 4, stride = none)
  # CHECK: [[#@LINE-1]]:39: error: `stride` of `conv2d` cannot be none: its default is 1
  y6 = nn.max_pool2d(picture, none)
  # CHECK: [[#@LINE-1]]:31: error: `size` of `max_pool2d` cannot be none: its default is 2
  y7 = max(x, none)
  # CHECK: [[#@LINE-1]]:15: error: `y` of `max` cannot be none
  # CHECK: help: leave `y` out
  y8 = conv(picture, w, padding = none)
  # CHECK: [[#@LINE-1]]:35: error: `padding` of `conv` cannot be none: its default is "valid"
  y9 = window_max(picture, none)
  # CHECK: [[#@LINE-1]]:28: error: `size` of `window_max` cannot be none: it has no default
  y10 = sum(x, keep = none)
  # CHECK: [[#@LINE-1]]:23: error: `keep` of `sum` cannot be none: its default is false
  y11 = cumsum(x, 1, none)
  # CHECK: [[#@LINE-1]]:22: error: `{{reverse|exclusive}}` of `cumsum` cannot be none: its default is false
  y12 = random_uniform(f32[3], none)
  # CHECK: [[#@LINE-1]]:32: error: `low` of `random_uniform` cannot be none: its default is 0
  y13 = einsum("ij,jk->ik", x, none)
  # CHECK: [[#@LINE-1]]:32: error: `b` of `einsum` cannot be none
  y14 = sin(none)
  # CHECK: [[#@LINE-1]]:13: error: `x` of `sin` cannot be none: it has no default
  made = nn.dense.new(units = none)
  y15 = made(x)
  # CHECK: [[#@LINE-2]]:31: error: `units` of `dense` must be int, not none: it has no default
  predict taken = taken + more
}

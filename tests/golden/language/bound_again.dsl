# A name may be bound again to what is made of it; a loop between does not disturb what that is called.
# REQUIRES: shell
# RUN: %dgc compile %s --entry train --emit graph 2>&1 | %FileCheck %s
# RUN: sed 's/^# WRONG//' %s > %t.dsl && %not %dgc check %t.dsl 2>&1 | %FileCheck %s --check-prefix=ERROR
use nn
layer twice(x) {
  x = relu(x)
  x = x * 2
  return x
}
model again(n = 3) {
  input x : u8[B, 4]
  input y : f32[B, 2]
  var scale : f32 = 1
  n = n + 1
  x = cast(x, f32) / 255
  h = nn.dense(x, units = 2 * n)
  h = nn.dense(h, units = 2 * n)
  for i in 0..3 {
    h = nn.dense(h, units = 8)
  }
  h = nn.dense(twice(h), units = 2)
  h = scale * h
  a, b = [h, h * 2]
  a, b = [b, a]
# WRONG  h = a
# WRONG  scale = scale * 2
# WRONG  for j in 0..2 {
# WRONG    k = relu(h)
# WRONG    k = a
# WRONG  }
# WRONG  for h in 0..2 { }
  train mean(squared_error(a, y) + 0 * b) with sgd(rate = 0.1)
}
# CHECK: x = input : u8[B,4]
# CHECK: x#2 = div x#2.cast
# CHECK: h.kernel = variable {trainable=1} : f32[4,8]
# CHECK: h#2.kernel = variable {trainable=1} : f32[8,8]
# CHECK: h.0.kernel = variable
# CHECK: h.1.kernel = variable
# CHECK: h.2.kernel = variable
# CHECK: h#3.x.x#2 = max
# CHECK: h#3.x = mul h#3.x.x#2
# CHECK: h#3.kernel = variable {trainable=1} : f32[8,2]
# CHECK: h#4 = mul

# ERROR: error: `h` is bound already
# ERROR: help: only what is made of `h` may take its name: call this value `h_2`, and use that behind it
# ERROR: error: `scale` is bound already
# ERROR: help: a variable is changed by its optimizer, or by `scale <- ...`
# ERROR: error: `k` is bound already
# ERROR: help: only what is made of `k` may take its name: call this value `k_2`
# ERROR: error: `h` is bound already
# ERROR: help: the loop may call it `h_2`

# What one of a chain does that nobody reads, patterns and paths that mean no variable, and two optimizers of one kind.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
model vain() {
  input x : f32[B, 2]
  h = nn.dense(x, 2)
  y = nn.dense(h, 1)
  loss = mean(y)
  train a = loss with [adam(), clip_by_global_norm(1.0)] over "y"
  train b = loss with [sgd(0.1), average(), scale(0.5), freeze("h*")] over "y"
  train c = loss with [freeze(["h.*", "*.weight", "*.bias"]), decay_weights(0.1, "*weight"), sgd(0.1)]
  train d = loss with sgd(0.1) over h
  train e = loss with sgd(0.1) over "hh"
  train f = loss with adam() over "h"
  train g = loss with adam() over "h"
}
# CHECK: :9:32: error: this changes a gradient that nothing behind it reads
# CHECK-NEXT: train a
# CHECK-NEXT: ^~
# CHECK-NEXT: help: what changes a gradient stands before an optimizer, as in `[clip_by_norm(1.0), adam()]`
# CHECK-NEXT: :10:45: error: this changes a gradient that nothing behind it reads
# CHECK: :11:39: warning: no trained variable is called `*.weight`
# CHECK: help: there are h.kernel, h.bias, y.kernel, y.bias
# CHECK: :11:82: warning: no trained variable is called `*weight`
# CHECK: :12:37: error: `over` takes trained variables or paths to them, not f32[B,2]
# CHECK: help: the variables of the layer that makes it are `over "h"`
# CHECK: :13:37: error: no trained variable lies under `hh`
# CHECK: help: there are h.kernel, h.bias, y.kernel, y.bias
# CHECK: :15:23: error: two variables would be called `h.kernel.adam.m`
# CHECK: help: two train statements change `h.kernel` by such an optimizer: `train a + 0.5 * b with ...` trains by both losses, `over` says what each trains
# CHECK-NOT: error:

# A pattern that means no variable but a state, which no optimizer changes: the warning says so, and where the state is.
# RUN: %dgc check %s 2>&1 | %FileCheck %s
use nn
model frozen() {
  input x : f32[B, 4]
  state seen : f32[] = 0
  seen += 1
  h_2 = nn.batch_norm(x)
  h = nn.dense(h_2, 1)
  train mean(square(h)) with [freeze(["seen", "h_2.moving_mean", "h_2.*", "*n"]), sgd(0.1)]
}
# CHECK: :10:39: warning: no trained variable is called `seen`
# CHECK: :6:9: note: `seen` is a state: no optimizer changes it, but what is assigned to it
# CHECK: help: there are h_2.scale, h_2.shift, h.kernel, h.bias
# CHECK: :10:47: warning: no trained variable is called `h_2.moving_mean`
# CHECK: note: `h_2.moving_mean` is a state
# CHECK-NOT: `h_2.*`
# CHECK: warning: no trained variable is called `*n`
# CHECK: note: `seen` is a state

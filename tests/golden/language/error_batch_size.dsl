# What elsewhere stands for the size of a batch.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model rows(None = 3) {
  input x : f32[none, 3]
  input y : f32[-1, 3]
  input fine : f32[B, None]
}
model others() {
  input x : f32[None, 3]
}
# CHECK: :4:17: error: a dimension must be an integer or B, not none
# CHECK: help: the axis of the batch, of whatever size, is `B`
# CHECK: :5:17: error: a dimension cannot be negative: -1
# CHECK: help: the axis of the batch, of whatever size, is `B`
# CHECK-NOT: :6:
# CHECK: :9:17: error: a dimension must be an integer or B, not None
# CHECK: help: the axis of the batch, of whatever size, is `B`

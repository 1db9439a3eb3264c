# Steps of an index: forwards, not of the batch.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model steps {
  input x : f32[B, 6]
  l = [1,2,3,4,5][1::2]
  n = sum(x[:, ::2], axis=1) * l[1]
  predict a = n
  predict c = x[:, ::-1]
  predict d = x[::2]
}
# CHECK: error_steps.dsl:8:22: error: an index goes forwards, in steps of 1 at least, not of -1
# CHECK: help: `reverse(x, axis)` has the elements in the other order
# CHECK: error_steps.dsl:9:17: error: the batch axis cannot be cut: its rows lie on different towers

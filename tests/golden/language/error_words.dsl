# A word of the language where a name should be.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model words() {
  input state : f32[B]
  input x : f32[B]
  metric train = mean(x)
  y = x
  for = 3
}
# CHECK: :4:9: error: unexpected `state`, expected a name
# CHECK: help: `state` is a word of the language: write another name
# CHECK: :6:10: error: unexpected `train`, expected a name
# CHECK: help: `train` is a word of the language: write another name
# CHECK: :8:7: error: unexpected `=`, expected a name
# CHECK-NOT: help

# What other libraries and languages call things: what to write here.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
import nn
model m() {
  input x : f32[B, 4]
  let a = x
  c = x
  predict x
  b = x // not a comment
}
# CHECK: :3:1: error: unexpected `import`
# CHECK-NOT: did you mean
# CHECK: help: write `use nn`
# CHECK: :6:7: error: unexpected `a`
# CHECK: help: write `name = value`
# CHECK: :8:12: error: unexpected end of the line
# CHECK: help: its name stands before its value: `predict name = value`
# CHECK: :9:10: error: unexpected `/`
# CHECK: help: a comment begins with `#`

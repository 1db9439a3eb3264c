# Files use other files by paths relative to themselves; numbers set from outside are typed by their defaults.
# RUN: %dgc compile --emit graph --set units=7 %s | %FileCheck %s
# RUN: %not %dgc check --set unit=7 %s 2>&1 | %FileCheck %s --check-prefix=SET
# RUN: %not %dgc check --set units=2.5 %s 2>&1 | %FileCheck %s --check-prefix=TYPE
use "inputs/blocks.dsl" as blocks
model use_file(units = 3) {
  input x : f32[B, 4]
  y = blocks.twice(x, units)
  train mean(y) with sgd()
}
# CHECK: y.first.kernel = variable {trainable=1} : f32[4,7]
# CHECK: y.kernel = variable {trainable=1} : f32[7,7]
# SET: error: model `use_file` has no parameter `unit`
# SET: help: did you mean `units`?
# TYPE: error: `units` must be an integer
# TYPE: note: it is 3 by default

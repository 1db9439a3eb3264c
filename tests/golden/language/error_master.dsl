# Where a master cannot stand, and what cannot be one.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
optimizer wide() { var all : f64[7] = 0 masters(variable) }
model wrong() {
  input x : f32[B, 2]
  state outside : f32[2] = 0 masters(variable)
  var w : f32[2] = 1 storage(bf16)
  loss = mean(x * w)
  train a = loss with [sgd(0.1), master()]
  train b = loss with [wide(), sgd(0.1)]
}
# CHECK: :6:30: error: only what an optimizer keeps masters a variable: `masters(variable)`
# CHECK: :{{[0-9]+}}:{{[0-9]+}}: error: `w.master.value` is no master of `w`, which has changed already
# CHECK: help: a master stands before what changes the variable, as in `[master(), adam()]`
# CHECK: :3:20: error: `w.wide.all` cannot master `w`: its type is another

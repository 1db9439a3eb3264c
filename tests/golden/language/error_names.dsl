# Unknown names come with what was probably meant.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
model names(hidden = 4) {
  input image : f23[B, 784]
  input x : f32[B, 4]
  a = softmx(x)
  b = hiden + 1
  c = nn.dens(x, 10)
  d = nn.dense(x, 10, activaton = relu)
  e = dense(x, 10)
  f = nn.dense(x)
  g = nn.dense(x, 1, relu, true, zeros, none, 3)
  h = nn.dense(x, units = 1, units = 2)
  i = hidden(3)
  x = 3
  j = nn.dense(x, 2)
  k = j.kernel
  l = x.shape[1]
  train mean(x) with adm()
}
# CHECK: :5:17: error: unknown type `f23`
# CHECK: help: did you mean `f32`?
# CHECK: :7:7: error: unknown function `softmx`
# CHECK: help: did you mean `softmax`?
# CHECK: :8:7: error: unknown name `hiden`
# CHECK: help: did you mean `hidden`?
# CHECK: :9:7: error: `nn` has no `dens`
# CHECK: help: did you mean `dense`?
# CHECK: :10:23: error: layer `dense` has no parameter `activaton`
# CHECK: help: did you mean `activation`?
# CHECK: nn.dsl:{{[0-9]+}}:7: note: its parameters: dense(x, units, activation = ...
# CHECK: :11:7: error: unknown function `dense`
# CHECK: help: the library has it: `use nn` and write `nn.dense`
# CHECK: :12:7: error: layer `dense` needs `units`
# CHECK: :13:47: error: layer `dense` takes 6 arguments, not 7
# CHECK: :14:30: error: `units` of `dense` is given twice
# CHECK: :15:7: error: `hidden` is not a function: it is the number 4
# CHECK: :16:3: error: `x` is bound already
# CHECK: :6:9: note: it is bound here
# CHECK: help: only what is made of `x` may take its name: call this value `x_2`, and use that behind it
# CHECK: :18:7: error: only libraries have members, not f32[B,2]
# CHECK: help: the variables of a layer are seen inside of it, and as `layer.kernel` where it is made by `new`
# CHECK: :19:7: error: only libraries have members, not f32[B,4]
# CHECK: help: it is a function: `shape(...)`
# CHECK: :20:22: error: unknown function `adm`
# CHECK: help: did you mean `adam`?

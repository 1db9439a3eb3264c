# What may stand where, and what may change what.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
layer bump(x) {
  var w : f32[4] = ones()
  w <- w + 1
  train mean(x) with sgd()
  return x * w
}
model statements() {
  input x : f32[B, 4]
  input y : f32[4]
  var n : i32 = 0
  var big : f32[B] = zeros()
  state s : f32[4] = ones()
  s <- s + 1
  s <- s * 2
  t = bump(x)
  if x > 0 { u = 1 }
  for i in 10 { v = 1 }
  for i in 0..9000000000 { v = 1 }
  z = zeros()
  q = sgd(0.1)
  x <- 3
  r = 1 / 3
  return x
  train x with sgd()
  train mean(x) with relu()
  metric a = sqrt(mean(x))
  metric b = x
  data test { z = "z.idx" }
  data valid { x = "x.idx" }
}
# CHECK: :11:13: error: an input begins with the batch axis B, not f32[4]
# CHECK: :12:11: error: a trained variable must be f32 or f64, not i32[]
# CHECK: help: declare it with `state`
# CHECK: :13:13: error: a variable cannot depend on the batch: f32[B]
# CHECK: :16:3: error: `s` is assigned twice in one step
# CHECK: :15:3: note: the other assignment is here
# CHECK: :5:3: error: `t.w` is trained: only its optimizer may assign it
# CHECK: :17:7: note: in layer `bump`, used here
# CHECK: :6:3: error: this statement stands only in a model
# CHECK: :18:6: error: a condition must be true or false, not bool[B,4]
# CHECK: help: it is decided when the model is compiled
# CHECK: :19:12: error: a loop goes over a range or a list, not the number 10
# CHECK: :20:12: error: a loop runs at most 1000000 times
# CHECK: :21:7: error: `zeros` is an initializer
# CHECK: :22:7: error: `sgd` is an optimizer: it stands behind `with`
# CHECK: :23:3: error: `x` is no variable
# CHECK: :24:7: error: 1 is not divisible by 3
# CHECK: help: integers divide exactly; for a fraction write `1.0 / 3`
# CHECK: :25:3: error: this statement does not stand in a model: use `predict`
# CHECK: :26:9: error: the loss `x` is not reduced: it is f32[B,4], and a loss is one number
# CHECK: :27:22: error: behind `with` stands an optimizer, not {{.*}}relu

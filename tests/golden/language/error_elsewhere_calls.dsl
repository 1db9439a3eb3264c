# What other libraries call functions, layers and parameters: what to write here.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
model m() {
  input x : f32[B, 4]
  c = where(x > 0, x, 0)
  d = nn.Linear(x, 3)
  e = nn.GlobalAveragePooling2D(x)
  f = nn.ReLU(x)
  g = sum(x, keepdims = true)
  h = dropout(x, p = 0.1)
  i = nn.dense(x, 3, activation = "relu")
  j = Dense(x, 3)
  k = nn.lstm(expand(x, 2), 3, return_sequences = true)
  for l in range(3) { m = x }
  n = accuracy(x, x)
  o = f1_score(x, x)
  p = reduce_on_plateau(0.1)
  q = x.T
  r = nn.conv2d(reshape(x, [B, 2, 2, 1]), 3, padding = "SAME")
  s = Input(x)
  predict y = x
}
model shaped() {
  input x : f32(B, 4)
  predict y = x
}
model padded() {
  input x : f32[B, 8, 8, 3]
  predict y = nn.conv2d(x, 8, padding = same)
  predict z = nn.conv2d(x, 8, padding = valid)
}
# CHECK: :6:7: error: unknown function `where`
# CHECK: help: it is written `select(c, a, b)`
# CHECK: :7:7: error: `nn` has no `Linear`
# CHECK: help: it is written `nn.dense(x, units)`
# CHECK: help: it is written `mean(x, axis = [1, 2])`
# CHECK: help: it is in no library: write `relu(...)`
# CHECK: help: did you mean `keep`?
# CHECK: help: did you mean `rate`?
# CHECK: help: functions have no quotes: `activation = relu`
# CHECK: help: the library has it: `use nn` and write `nn.dense`
# CHECK: help: did you mean `sequence`?
# CHECK: help: it is written `for i in 0..n { }`
# CHECK: help: it is written `mean(correct(logits, label))`
# CHECK: help: of p and t, which are 0 or 1: `2 * sum(p * t) / (sum(p) + sum(t))`
# CHECK: help: a rate follows `step` alone
# CHECK: help: it is written `transpose(x)`
# CHECK: help: write "same"
# CHECK: help: a statement declares it: `input x : f32[B, 28]`
# CHECK: :25:13: error: the axes of a type stand in `[ ]`
# CHECK: help: write `f32[B, 4]`
# CHECK: error: unknown name `same`
# CHECK: help: words stand in quotes: "same"
# CHECK: help: words stand in quotes: "valid"

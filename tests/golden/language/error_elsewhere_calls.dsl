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
model parameters() {
  input x : f32[B, 8, 8, 3]
  input ids : i32[B, 4]
  p = nn.conv2d(x, 8, padding = 1)
  q = nn.conv_transpose(x, 8, output_padding = 1)
  r = nn.layer_norm(x, training = true)
  s = nn.batch_norm(x, axis = 1)
  t = nn.dense(x, 8, kernel_regularizer = "l2")
  u = nn.embedding(ids, 9, 3, mask_zero = true)
  v = nn.dense(x, 8, kernel_initializer = zeros)
  w = nn.conv2d(x, 8, groups = 2)
  a = x[:, None]
  b = x[..., np.newaxis]
  c = ids[:, :, newaxis]
  d = x[None, 0, :]
  e = ids[None, :]
  f = roc_auc(x, x)
  g = top_k_accuracy(x, ids, 3)
  h = nn.lstm(ids, 8, num_layers = 2)
  loss = mean(x)
  train i = loss with adamw(1e-3, only = "*")
  train j = loss with adam(1e-3, clipnorm = 1.0)
}
model inputs() {
  input label : i32
  input x : f32[32, 8]
  input y : f32[3, B]
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
# CHECK: help: of floats p and t, which are 0 or 1: `ratio(2 * sum(p * t), sum(p) + sum(t))`
# CHECK: help: a rate follows `step` alone
# CHECK: help: it is written `transpose(x)`
# CHECK: help: write "same"
# CHECK: help: a statement declares it: `input x : f32[B, 28]`
# CHECK: :25:13: error: the axes of a type stand in `[ ]`
# CHECK: help: write `f32[B, 4]`
# CHECK: error: unknown name `same`
# CHECK: help: words stand in quotes: "same"
# CHECK: help: words stand in quotes: "valid"
# CHECK: error: `padding` is "same", "valid", or a list of [before, behind] for each of the 2 spatial axes, not the number 1
# CHECK: help: write `padding = {{\[\[}}1, 1], [1, 1]]`; with "same" the result has the size of the input
# CHECK: error: layer `conv_transpose` has no parameter `output_padding`
# CHECK: help: its result is `stride` times as large with padding "same"
# CHECK: error: layer `layer_norm` has no parameter `training`
# CHECK: help: it is known to each layer: `training` is true where a step trains
# CHECK: error: layer `batch_norm` has no parameter `axis`
# CHECK: help: channels are the last axis: `transpose(x, [0, 2, 3, 1])` moves them there
# CHECK: help: weights decay by what stands before the optimizer: `[decay_weights(1e-4, only = "*kernel"), sgd(0.1)]`
# CHECK: help: `padding = 0` makes rows of zeros of such ids; layers over sequences take `lengths`
# CHECK: help: did you mean `initial`?
# CHECK: error: `C / groups` is no integer: 3 is not divisible by 2
# CHECK-NOT: for a fraction
# CHECK: error: an index makes no axis
# CHECK-NEXT: a = x[:, None]
# CHECK: help: write `expand(x, 1)`
# CHECK: help: write `expand(x, -1)`
# CHECK: help: write `expand(ids, 2)`
# CHECK: help: `expand(x, axis)` puts one of size 1 in front of axis `axis`
# CHECK: help: write `expand(ids, 0)`
# CHECK: help: it is written `auc(sigmoid(logits), label)`
# CHECK: help: it is written `mean(in_top_k(logits, label, k))`
# CHECK: help: layers one on the other are `nn.stacked(x, [64, 64], cell = nn.lstm)`
# CHECK: help: a list says which weights decay: `[scale_by_adam(), decay_weights(0.01, only = "*kernel"), sgd(1e-3)]`
# CHECK: help: gradients are clipped by what stands before the optimizer: `[clip_by_norm(1.0), adam()]`
# CHECK: error: an input begins with the batch axis B, not i32[]
# CHECK: help: write `i32[B]`
# CHECK: help: write `f32[B,32,8]`, or where 32 is the number of rows `f32[B,8]`
# CHECK: help: write `f32[B, ...]`

# Calls without their input, which elsewhere make a function: what to write here.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
function act(x) { return leaky_relu(x, 0.2) }
function picked(n) { return relu }
initializer first() { return normal(stddev = 0.02) }
layer of_number(n : int) { return relu }
layer block(x, n : int) { return nn.dense(x, n) }
model good {
  input x : f32[B, 3]
  a = nn.dense(x, 4, activation = act, initial = first)
  b = nn.dense.new(4)(of_number(3)(picked(3)(a)))
  predict y = nn.dense(b, max(3, 4), relu)
}
model wrong {
  input x : f32[B, 3]
  input text : i32[B, 5]
  input image : f32[B, 8, 8, 3]
  units = 3
  # CHECK: [[#@LINE+2]]:7: error: a call of `nn.dense` gives a tensor, which cannot be called
  # CHECK: help: the input comes first: `nn.dense(x, 64)`, or `nn.dense.new(64)(x)`
  a = nn.dense(64)(x)
  # CHECK: help: the input comes first: `nn.dense(x, 2 * units, activation = relu)`, or `nn.dense.new(2 * units, activation = relu)(x)`
  b = nn.dense(2 * units, activation = relu)(x)
  # CHECK: help: the input comes first: `nn.embedding(text, 100, 16)`, or `nn.embedding.new(100, 16)(text)`
  c = nn.embedding(100, 16)(text)
  # CHECK: help: the input comes first: `nn.conv2d(image, 32, 3)`, or `nn.conv2d.new(32, 3)(image)`
  d = nn.conv2d(32, 3)(image)
  # CHECK: help: the input comes first: `nn.batch_norm(x)`, or `nn.batch_norm.new()(x)`
  e = nn.batch_norm()(x)
  # CHECK: help: the input comes first: `nn.mlp(x + 1, [3, 4])`, or `nn.mlp.new([3, 4])(x + 1)`
  f = nn.mlp([3, 4])(x + 1)
  # CHECK: help: the input comes first: `block(x, 3)`, or `block.new(3)(x)`
  g = block(3)(x)
  # CHECK: [[#@LINE+2]]:7: error: a call of `dropout` gives a tensor, which cannot be called
  # CHECK: help: the input comes first: `dropout(x, 0.5)`
  h = dropout(0.5)(x)
  # CHECK: help: the input comes first: `nn.max_pool2d(image, 2)`
  i = nn.max_pool2d(2)(image)
  # CHECK: help: the input comes first: `softmax(x)`
  j = softmax()(x)
  # CHECK: [[#@LINE+1]]:7: error: f32[B,3] cannot be called
  k = relu(x)(x)
  # CHECK: error: layer `dense` needs `units`
  # CHECK: help: the input comes first: `nn.dense(x, 64)`; `nn.dense.new(64)` makes a layer that is called later
  l = nn.dense(64)
  # CHECK: error: `x` of `conv2d` must be T[N, H, W, C], not the number 32
  # CHECK: help: the input comes first; `conv2d.new(...)` makes a layer that is called later
  m = nn.conv2d(32, 3)
  # CHECK: [[#@LINE+2]]:32: error: `initial` of `dense` takes an initializer, not what a call of it gives
  # CHECK: help: without brackets: `initial = he_normal`
  n = nn.dense(x, 4, initial = he_normal())
  # CHECK: help: define one beside the model: `initializer first() { return normal(stddev = 0.02) }`, and write `initial = first`
  o = nn.dense(x, 4, initial = normal(stddev = 0.02))
  # CHECK: error: `activation` of `dense` takes a function, not what a call of it gives
  # CHECK: help: without brackets: `activation = relu`
  p = nn.dense(x, 4, relu())
  # CHECK: help: define one beside the model: `function act(x) { return leaky_relu(x, 0.2) }`, and write `activation = act`
  q = nn.dense(x, 4, activation = leaky_relu(0.2))
  # CHECK: error: `cell` of `bidirectional` takes a layer, not what a call of it gives
  # CHECK: help: without brackets: `cell = nn.gru`
  r = nn.bidirectional(expand(x, 1), 3, cell = nn.gru(3))
  loss = mean(x)
  # CHECK: error: an optimizer has no part `clip`
  # CHECK: help: several stand in a list, what changes gradients in front: `[clip_by_global_norm(1.0), adam(1e-3)]`
  train loss with adam(1e-3).clip(1.0)
}
model values {
  input x : f32[B, 3]
  # CHECK: [[#@LINE+2]]:20: error: a first value is what a call of an initializer gives
  # CHECK: help: write `he_normal()`
  var w : f32[3] = he_normal
  # CHECK: [[#@LINE+2]]:32: error: `initial` of `dense` takes an initializer, not the number 0.1
  # CHECK: help: define one beside the model: `initializer first() { return 0.1 }`, and write `initial = first`
  s = nn.dense(x, 4, initial = 0.1)
  # CHECK: [[#@LINE+2]]:35: error: `activation` of `dense` takes a function, not none
  # CHECK: help: write `activation = identity`
  t = nn.dense(x, 4, activation = none)
  predict y = x
}

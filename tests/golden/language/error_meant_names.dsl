# Names and calls of other libraries, and what they are here.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
model libraries() {
  input x : f32[batch, 4]
  input y : f32[B, 4]
  a = np.where(y > 0, y, 0)
  b = torch.nn.functional.relu(y)
  c = keras.layers.Dense(64)(y)
  d = jax.random.uniform(key, 3)
  e = math.pi
  f = np.float32
  g = jax.vmap(f)(y)
  h = np.such(y)
  i = y.cuda()
  j = y.at
  k = DataLoader(y, batch_size = 32)
  l = float("inf")
  loss = mean(nn.dense(y, 1))
  train loss with optim.Adam(lr = 1e-3)
}
# CHECK: error: unknown name `batch`
# CHECK: help: did you mean `B`?
# CHECK: :7:7: error: unknown name `np`
# CHECK: help: here it is `select(c, a, b)`
# CHECK: :8:7: error: unknown name `torch`
# CHECK: help: here it is `relu`
# CHECK: :9:7: error: unknown name `keras`
# CHECK: help: here it is `nn.dense`
# CHECK: help: a layer is called once, and its input comes first: `nn.dense(x, 64)`
# CHECK: :10:7: error: unknown name `jax`
# CHECK: help: here it is `random_uniform`
# CHECK: :11:7: error: unknown name `math`
# CHECK: help: here it is `pi`
# CHECK: help: here it is `f32`
# CHECK: help: functions work on all rows of a batch
# CHECK-NOT: a layer is called once
# CHECK: help: layers are in `nn`
# CHECK: help: `--devices gpu:0` says what a model runs on
# CHECK: help: elements are not assigned: `select(c, a, b)`
# CHECK: help: data is named in the model
# CHECK: help: of a tensor it is `cast(x, f32)`; numbers need none, and infinity is `inf`
# CHECK: :20:19: error: unknown name `optim`
# CHECK: help: here it is `adam`
model calls() {
  input x : f32[B, 4]
  a = nn.Dense(64)(x)
  b = nn.dense(x)
  c = nn.dense(x, activation = relu)
  d = concat([x, x])
  e = nn.lstm(expand(x, 2), 3, lengths = 3)
  f = nn.gru(expand(x, 2), 3, lengths = [1, 2])
  g = nn.batch_norm(x, 4)
  h = nn.layer_norm(x, 4)
  i = reshape(x, [32, 4])
  j = reshape(x, B, 4)
  var k : f32[3] = zeros(3)
  l = zeros([B, 4])
  m = adam(1e-3)
  n = nn.dense.new(3)
  o = n.forward(x)
  loss = mean(x)
  metric p = "accuracy"
  train loss with "Adam"
}
# CHECK: error: `nn` has no `Dense`
# CHECK: help: did you mean `dense`?
# CHECK: help: a layer is called once, and its input comes first: `nn.dense(x, 64)`
# CHECK: error: layer `dense` needs `units`
# CHECK: help: write `nn.dense(x, units)`
# CHECK: help: write `nn.dense(x, units = ..., activation = relu)`
# CHECK: help: write `concat([x, x], axis)`
# CHECK: :51:42: error: `lengths` of `lstm` must be U[N], not the number 3
# CHECK: help: it has one for each row, as `input lengths : i32[B]` has
# CHECK: :52:41: error: `lengths` of `gru` must be U[N], not the list [1, 2]
# CHECK: help: it has one for each row, as `input lengths : i32[B]` has
# CHECK: :53:24: error: `momentum` of `batch_norm` must be fraction, not the number 4.0: it is at least 0 and less than 1
# CHECK: :54:24: error: `epsilon` of `layer_norm` must be fraction, not the number 4.0: it is at least 0 and less than 1
# CHECK: help: a batch has any number of rows, which is called `B`
# CHECK: help: the numbers of `shape` stand in a list: `[2, 3]`
# CHECK: help: an initializer has the shape of its variable: `var w : f32[3] = zeros()`
# CHECK: help: a tensor of one number is `broadcast(cast(0, f32), shape)`
# CHECK: help: write `train loss with adam(...)`
# CHECK: help: a layer is called by its name: `n(x)`
# CHECK: help: without quotes: `adam()`
# CHECK: help: it is written `mean(correct(logits, label))`

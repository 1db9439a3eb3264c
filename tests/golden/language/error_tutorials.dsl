# Mistakes of who writes a model of another framework's tutorial here: each says what to write.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
layer net(x, units, rate) { return dropout(nn.dense(x, units), rate) }
model shapes() {
  input image : f32[B, 8, 8, 1]
  input x     : f32[B, 5, 4]
  input a     : f32[B]
  input known : bool[B]
  input label : u8[B]
  logits = nn.dense(image, 10)
  # CHECK: [[#@LINE+3]]:29: error: `softmax_cross_entropy` takes logits [..., classes] and the numbers of classes [...], not f32[B,8,8,10] and u8[B]
  # CHECK: note: `logits` is f32[B,8,8,10]
  # CHECK: help: a label is that of one vector of logits: `flatten(x)` before the last layer makes [B, n] of images
  l = softmax_cross_entropy(logits, label)
  # CHECK: [[#@LINE+3]]:29: error: `logits` of `softmax_cross_entropy` are f32 or f64, not u8[B]
  # CHECK: note: `label` is u8[B]
  # CHECK: help: what the model says stands first: `softmax_cross_entropy(logits, label)`
  m = softmax_cross_entropy(label, a)
  # CHECK: error: `logits` of `correct` are f32 or f64, not u8[B]
  n = correct(label, nn.dense(x[:, 0], 10))
  # CHECK: error: add needs shapes that broadcast, not f32[B,5,4] and f32[B,4]
  # CHECK: help: `expand(x, 1)` gives f32[B,4] an axis behind the batch
  o = x + x[:, 0]
  # CHECK: error: the batch axis cannot be cut: its rows lie on different towers
  # CHECK: help: the batch is the first axis: `x[:, i]` is what each row has at place i
  p = x[-1]
  # CHECK: error: there is no axis 1: the tensor has 1
  # CHECK: help: axes are counted from 0; `stack([x, y], axis = 1)` makes one
  q = concat([a, a], axis = 1)
  # CHECK: error: f32[B] and bool[B] do not fit together
  # CHECK: help: types are never converted silently: write `cast(known, f32)`
  r = stack([a, known], axis = 1)
  # CHECK: error: u8[B] and i32[B] do not fit together
  # CHECK: help: types are never converted silently: write `cast(label, i32)`
  s = stack([label, cast(label, i32)], axis = 1)
  # CHECK: error: f32[B,4] and f32[B] do not fit together along axis 1
  # CHECK: help: `expand(x, 1)` gives a tensor one more axis there
  t = concat([x[:, 0], a], axis = 1)
  # CHECK: error: `x` of `batch_norm` must be T[...S, K], not the list [f32[B], f32[B]]
  # CHECK: help: `stack(list, axis = 1)` makes one tensor of a list
  u = nn.batch_norm([a, a])
  # CHECK: error: `size` needs 2 numbers, one for each axis, not 3
  v = nn.conv2d(image, 4, [3, 3, 1])
  # CHECK: error: `down` of `room_of` must be nonnegative, not the number -4: it is at least 0
  # CHECK: images are [B, height, width, channels], parts no larger
  w = nn.random_crop(image, 12, 12)
  # CHECK: error: random numbers are f32 or f64, not u8[B,1,1,1]
  # CHECK: help: what they are joined with is converted before: `cast(x, f32)`
  y = nn.random_brightness(reshape(label, [B, 1, 1, 1]), 0.1)
  # CHECK: error: layer `net.new` takes 2 arguments, not 3
  # CHECK: help: what is made takes `x` when it is called
  z = net.new(a, 4, 0.1)
  # CHECK: error: a loop goes over a range or a list, not f32[B,5,4]
  # CHECK: help: over a tensor goes a loop at run time: `ys = scan over row in x { return ... }`
  for row in x { b = row }
  # CHECK: error: a metric is a scalar, not f32[4]
  # CHECK: help: it is one figure, as `x[0]`; a table of them is made of what `dgc predict` writes
  metric sums = sum(x, axis = [0, 1])
  predict one = x
}
model training(rate = 0.1) {
  input x : f32[B, 4]
  # CHECK: error: `x` is no variable: `+=` changes variables, `=` binds a name
  # CHECK: help: write `x = x + ...`
  x += 1
  var w : f32[4] = zeros()
  # CHECK: error: behind `with` stands an optimizer, not function one_cycle
  # CHECK: help: a rate that changes stands in an optimizer: `sgd(one_cycle(...))`
  train mean(x * w) with [adam(), one_cycle(rate, 100)]
  # CHECK: error: data is for `train` or `test`, not `val`
  # CHECK: help: what is evaluated stands in `data test { }`, and --rows 0:A --eval-rows A:B cuts `data train`
  data val { x = "x.npy" }
  predict y = x
}
# What is carried is none in prediction either.
model writes() {
  input x : f32[B, 5, 4]
  h = x[:, 0]
  # CHECK: error: `h` is no variable
  # CHECK-NOT: does not stand in a `scan`
  ys = scan h over g in x { h += g; return h }
  predict y = ys
}
# What others have by another name.
model words() {
  input x : f32[B, 4]
  # CHECK: error: unknown type `string`
  # CHECK: help: words of a table are numbers, i32 of `x.csv:city:category`, and letters of a text u8
  input name : string[B]
  # CHECK: error: `nn` has no `MaxPool2D`
  # CHECK: help: did you mean `max_pool2d`?
  a = nn.MaxPool2D(x)
  # CHECK: help: did you mean `layer_norm`?
  b = nn.LayerNorm(x)
  # CHECK: help: images are moved by `nn.random_crop(x, height, width, padding)`, and turned round by `nn.random_flip(x)`
  c = nn.RandomRotation(x)
  # CHECK: help: it is written `select(is_nan(x), 0, x)`
  d = nan_to_num(x)
  # CHECK: help: `is_nan(x)` finds it
  e = x == nan
  # CHECK: help: it is written `one_cycle(rate, steps)`
  f = OneCycleLR(0.1, 100)
  # CHECK: help: it is written `cosine_decay(rate, steps)`
  g = CosineAnnealingLR(0.1, 100)
  # CHECK: help: `predict` gives out what is said and what is so
  h = confusion_matrix(x, x)
  # CHECK: help: it is written `exp(mean(loss))`
  i = perplexity(x)
  # CHECK: error: layer `lstm` has no parameter `hidden_size`
  # CHECK: help: did you mean `units`?
  j = nn.lstm(expand(x, 1), hidden_size = 4)
  # CHECK: help: did you mean `size`?
  k = nn.conv1d(expand(x, 1), 4, kernel = 3)
  # CHECK: help: `transpose(x)` turns the last two axes round: `a @ transpose(b)`
  l = matmul(x, x, transpose_b = true)
  # CHECK: error: `@` needs equal inner dimensions
  # CHECK: help: with the last two axes turned round it fits: `x @ transpose(y)`
  m = expand(x, 1) @ expand(x, 1)
  # CHECK: help: `rate` is the share that is left out: 1 - keep_prob
  n = dropout(x, keep_prob = 0.5)
  # CHECK: help: names need no `self`
  o = self.fc1(x)
  var fc : f32[4, 4] = glorot_uniform()
  # CHECK: error: `fc` is not a function: it is f32[4,4]
  # CHECK: help: a product of matrices is `x @ fc`
  p = fc(x)
  # CHECK: help: weights decay by the optimizer
  q = l2(fc)
  # CHECK: error: a type is needed here, such as f32[B, 10], not the list [3]
  # CHECK: help: write `f32[3]`
  r = random_normal([3])
  # CHECK: error: a data file must be a string or a list of strings
  # CHECK: help: the name of a file stands in quotes: "x.npy"
  data train { x = x.npy }
  predict y = x
}

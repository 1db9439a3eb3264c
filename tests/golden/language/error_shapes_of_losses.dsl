# Shapes that do not fit into what the library takes: what to write is said, not what is inside of it.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
model shapes() {
  input x : f32[B, 24]
  input steps : f32[B, 20, 4]
  input label : i32[B]
  input hot : i32[B, 3]
  input column : i32[B, 1]
  logits = nn.dense(x, 3)
  a = softmax_cross_entropy(squeeze(nn.dense(x, 1), 1), label)
  b = softmax_cross_entropy(logits, hot)
  c = softmax_cross_entropy(nn.dense(steps, 2), label)
  d = correct(logits, column)
  e = focal_loss(logits[:, 0], label)
  f = in_top_k(logits, hot, 2)
  g = squeeze(x, 1)
  h = squeeze(x, 2)
  i = nn.gru(x, 3)
  j = nn.transformer_encoder(steps, heads = 2, num_layers = 2)
  k = nn.gru(steps, 3, num_layers = 2)
  good = softmax_cross_entropy(nn.dense(steps, 3), broadcast(column, [B, 20]))
  best = correct(steps, broadcast(column, [B, 20]))
  predict y = x
}
# CHECK: :11:29: error: `softmax_cross_entropy` takes logits [..., classes] and the numbers of classes [...], not f32[B] and i32[B]
# CHECK: help: of one logit for each row it is `sigmoid_cross_entropy(logits, label)`, with a label of 0 or 1
# CHECK: :12:29: error: `softmax_cross_entropy` takes logits [..., classes] and the numbers of classes [...], not f32[B,3] and i32[B,3]
# CHECK: help: of labels that are 1 at the place of their class it is `argmax(hot, 1)`
# CHECK: :13:29: error: `softmax_cross_entropy` takes {{.*}}, not f32[B,20,2] and i32[B]
# CHECK: help: a label is that of one vector of logits: `mean(x, axis = 1)` before the last layer makes one of all steps
# CHECK: :14:15: error: `correct` takes {{.*}}, not f32[B,3] and i32[B,1]
# CHECK: help: write `squeeze(column, 1)`
# CHECK: :15:18: error: `focal_loss` takes
# CHECK: :16:16: error: `in_top_k` takes
# CHECK: :17:7: error: `squeeze` leaves an axis of size 1 out, and this one of f32[B,24] has another size
# CHECK: help: an axis is made one number by `mean(x, axis = 1)`, `x[:, 0]`, or a layer
# CHECK: :18:7: error: there is no axis 2: the tensor has 2
# CHECK: :19:14: error: `x` of `gru` must be T[N, L, K], not f32[B,24]: it needs 3 axes
# CHECK: help: `expand(x, 2)` is f32[B,24,1]
# CHECK: :20:48: error: layer `transformer_encoder` has no parameter `num_layers`
# CHECK-NEXT: 20 |
# CHECK-NEXT: ^
# CHECK-NEXT: help: `blocks` says how many there are
# CHECK: :21:24: error: layer `gru` has no parameter `num_layers`
# CHECK: help: layers one on the other are `nn.stacked(x, [64, 64], cell = nn.lstm)`
# CHECK-NOT: error:

# How others weigh and mask losses and attention: what to write here, which is a model that is right.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
# RUN: %dgc check %S/inputs/elsewhere_losses.dsl
# RUN: %dgc check %S/inputs/elsewhere_layers.dsl
use nn
model weighed() {
  input x : f32[B, 6, 3]
  input seen : bool[B, 6]
  input ids : i32[B, 6]
  input label : i32[B]
  var w : f32[3] = ones()
  a = softmax_cross_entropy(x[:, 0], label, label_smoothing = 0.1)
  b = softmax_cross_entropy(x[:, 0], label, weight = [1.0, 2.0, 3.0])
  c = softmax_cross_entropy(x[:, 0], label, ignore_index = -1)
  d = sigmoid_cross_entropy(x[:, 0], x[:, 1], pos_weight = 3.0)
  e = nn.multi_head_attention(x, heads = 3, key_padding_mask = seen)
  f = nn.embedding(ids, num_embeddings = 10, embedding_dim = 4)
  g = [1.0, 2.0, 3.0][label]
  h = w[label]
  i = precision(x, x)
  j = softmax_cross_entropy(x[:, 0], label, class_weight = [1.0, 2.0, 5.0])
  k = softmax_cross_entropy(x[:, 0], label, sample_weight = x[:, 0, 0])
  predict y = x
}
# CHECK: error: function `softmax_cross_entropy` has no parameter `label_smoothing`
# CHECK: help: labels are smoothed before: `softmax_cross_entropy(logits, smooth_labels(label, 3, 0.1))`, of 3 classes
# CHECK: error: function `softmax_cross_entropy` has no parameter `weight`
# CHECK: help: a row's weight is that of its label's class: `weighted_mean(loss, gather(cast([1.0, 2.0, 3.0], f32), label))`
# CHECK: help: rows count for nothing with a weight of 0: `weighted_mean(softmax_cross_entropy(logits, max(label, 0)), cast(label >= 0, f32))`
# CHECK: help: the loss is weighed where the label is 1: `mean(sigmoid_cross_entropy(logits, label) * (1 + (3.0 - 1) * label))`
# CHECK: help: `mask` says what is seen: `nn.length_mask(lengths, size)`, or of m, bool[B, size], true where a place is seen, `expand(expand(m, 1), 1)`
# CHECK: error: layer `embedding` has no parameter `num_embeddings`
# CHECK: help: did you mean `size`?
# CHECK: error: layer `embedding` has no parameter `embedding_dim`
# CHECK: help: did you mean `units`?
# CHECK: error: an index must be an integer, not i32[B]
# CHECK: help: a list of numbers is a tensor by `cast([1.0, 2.0], f32)`, and `gather(x, ids)` looks up its rows
# CHECK: error: an index of a tensor must be an integer, not i32[B]
# CHECK: help: to look up rows by a tensor of numbers write `gather(x, ids)`
# CHECK: help: of floats p and t, which are 0 or 1: `ratio(sum(p * t), sum(p))`
# CHECK: help: a row's weight is that of its label's class, of which Keras sums over the number of rows: `sum_over_batch_size(loss, gather(cast([1.0, 2.0, 3.0], f32), label))`, of 3 classes; `weighted_mean` of the same is over the sum of the batch's weights, as torch's
# CHECK: help: rows are weighed by what is computed, or is an input: `sum_over_batch_size(loss, weights)`, over the number of rows; `weighted_mean(loss, weights)` is over the sum of the batch's weights

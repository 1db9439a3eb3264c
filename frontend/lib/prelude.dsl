# Always in scope: functions made of the primitive ones.

# ---- activations; between equals max and min give their gradient to the left: relu has none at 0 ----

# max(0, x), by element.
#   input x : f32[B, 4]
#   predict y = relu(x)
function relu(x) { return max(0, x) }

# min(6, max(0, x)), by element.
#   input x : f32[B, 4]
#   predict y = relu6(x)
function relu6(x) { return min(6, max(0, x)) }

# x where x > 0, else slope * x.
#   input x : f32[B, 4]
#   predict y = leaky_relu(x, 0.2)
function leaky_relu(x, slope = 0.01) { return select(x > 0, x, x * slope) }

# x where x > 0, else alpha * (e^x - 1) (Clevert, Unterthiner, Hochreiter 2016).
#   input x : f32[B, 4]
#   predict y = elu(x)
function elu(x, alpha = 1.0) { return select(x > 0, x, alpha * expm1(select(x > 0, 0, x))) }

# elu, scaled so that numbers of mean 0 and variance 1 stay such (Klambauer et al. 2017).
#   input x : f32[B, 4]
#   predict y = selu(x)
function selu(x) { return 1.0507009873554805 * elu(x, 1.6732632423543772) }

# x * P(Z <= x) of a normal Z, by erf (Hendrycks, Gimpel 2016).
#   input x : f32[B, 4]
#   predict y = gelu(x)
function gelu(x) { return 0.5 * x * (1 + erf(x * 0.7071067811865476)) }

# x * sigmoid(x), also called swish.
#   input x : f32[B, 4]
#   predict y = silu(x)
function silu(x) { return x * sigmoid(x) }

# x * tanh(softplus(x)) (Misra 2019).
#   input x : f32[B, 4]
#   predict y = mish(x)
function mish(x) { return x * tanh(softplus(x)) }

# x / (1 + |x|).
#   input x : f32[B, 4]
#   predict y = softsign(x)
function softsign(x) { return x / (1 + abs(x)) }

# relu6(x + 3) / 6: sigmoid in three straight lines.
#   input x : f32[B, 4]
#   predict y = hard_sigmoid(x)
function hard_sigmoid(x) { return relu6(x + 3) / 6 }

# ---- shapes ----

# A new axis of size 1 in front of axis `axis`; -1: behind the last.
#   input x : f32[B, 4]
#   predict y = expand(x, 1)          # f32[B, 1, 4]
function expand(x, axis = -1) {
  at = axis if axis >= 0 else axis + rank(x) + 1
  return reshape(x, shape(x)[0:at] + [1] + shape(x)[at:])
}

# Without the axis `axis`, which must have size 1.
#   input x : f32[B, 1, 4]
#   predict y = squeeze(x, 1)         # f32[B, 4]
function squeeze(x, axis) {
  at = axis if axis >= 0 else axis + rank(x)
  return reshape(x, shape(x)[0:at] + shape(x)[at + 1:])
}

# All axes but the first as one.
#   input x : f32[B, 2, 3]
#   predict y = flatten(x)            # f32[B, 6]
function flatten(x) { return reshape(x, [shape(x)[0], -1]) }

# A row of `depth` zeros with a 1 at the place that x says; nothing but zeros where a computed x is no place. In the data of inputs
# that is an error.
#   input x : i32[B]
#   predict y = one_hot(x, 3)         # f32[B, 3]
function one_hot(x : integers, depth : int, to = f32) {
  id = integers(expect_range(x, 0, depth - 1))
  return cast(expand(id) == iota(dtype(id)[depth]), to)
}

# The rows of a table that `ids` name: of an embedding. Zeros for computed ids that name none, as TensorFlow has on GPUs; in the data
# of inputs they are an error.
#   input ids : i32[B, 5]
#   var table : f32[10, 4] = normal()
#   predict y = lookup(table, ids)    # f32[B, 5, 4]
function lookup(table : T[rows, units], ids : integers) { return gather(table, ids) }

# ---- statistics ----

# mean((x - mean(x))^2) along axes, none: all. As numpy's: torch.var divides by one less than the number of values.
#   input x : f32[B, 4]
#   predict y = variance(x, axis = 1) # f32[B]
function variance(x, axis = none, keep = false) {
  center = mean(x, axis = axis, keep = true)
  return mean(square(x - center), axis = axis, keep = keep)
}

# The root of the variance, as numpy's std; torch.std divides by one less.
#   input x : f32[B, 4]
#   predict y = stddev(x, axis = 1)   # f32[B]
function stddev(x, axis = none, keep = false) { return sqrt(variance(x, axis, keep)) }

# min(max(x, low), high), by element; a bound that is none is not there.
#   input x : f32[B, 4]
#   predict y = clip(x, -1, 1)
function clip(x, low, high) { y = x if low == none else max(x, low); return y if high == none else min(y, high) }

# sqrt(sum(x^2)) along axes, none: all.
#   input x : f32[B, 4]
#   predict y = norm(x, axis = 1)     # f32[B]
function norm(x, axis = none, keep = false) { return sqrt(sum(square(x), axis = axis, keep = keep)) }

# x / norm(x) along an axis, whose square is taken as `epsilon` at least.
#   input x : f32[B, 4]
#   predict y = l2_normalize(x)
function l2_normalize(x, axis = -1, epsilon = 1e-12) {
  return x * rsqrt(max(sum(square(x), axis = axis, keep = true), epsilon))
}

# ---- probabilities ----

# e^x / sum(e^x) along an axis. The largest element is taken off first, so that exp cannot overflow.
#   input x : f32[B, 4]
#   predict y = softmax(x)
function softmax(x, axis = -1) {
  e = exp(x - stop_gradient(max(x, axis = axis, keep = true)))
  return e / sum(e, axis = axis, keep = true)
}

# log(softmax(x)), without the rounding of the two.
#   input x : f32[B, 4]
#   predict y = log_softmax(x)
function log_softmax(x, axis = -1) {
  shifted = x - stop_gradient(max(x, axis = axis, keep = true))
  return shifted - log(sum(exp(shifted), axis = axis, keep = true))
}

# log(sum(e^x)) along axes. An infinite largest element is not taken off: exp gives what it should, and Inf - Inf
# would not.
#   input x : f32[B, 4]
#   predict y = logsumexp(x)          # f32[B]
function logsumexp(x, axis = -1, keep = false) {
  top = stop_gradient(max(x, axis = axis, keep = true))
  base = select(is_finite(top), top, 0)
  y = log(sum(exp(x - base), axis = axis, keep = true)) + base
  return y if keep else reshape(y, shape(max(x, axis = axis)))
}

# ---- losses: one number per example ----

# -log softmax(logits)[label] of each row. `label` holds class numbers of any integer type, or one probability per class. A class
# number that is none is an error in the data of an input; a computed one makes the row's loss and gradient NaN, as TensorFlow has on
# GPUs: where rows are to count for nothing, take max(label, 0), and a weight of 0.
#   input x : f32[B, 10]
#   input label : i32[B]
#   logits = x @ broadcast(0.1, [10, 3])
#   metric loss = mean(softmax_cross_entropy(logits, label))
function softmax_cross_entropy(logits : T[..., classes], label) {
  shifted = logits - stop_gradient(max(logits, axis = -1, keep = true))
  total = log(sum(exp(shifted), axis = -1))
  if is_share(label, logits) { return cross_entropy_of_shares(shifted, total, label) }
  id = class_numbers(label, classes)
  hit = expand(id) == iota(dtype(id)[classes])
  return total * cast(of_class(label, classes), T) - sum(select(hit, shifted, 0), axis = -1)
}

# -label * log(sigmoid(x)) - (1 - label) * log(1 - sigmoid(x)), by element. A label is 0 or 1, or a probability: anything else is an
# error in the data of an input. Of a column of two words, which count from 1, it is `cast(expect_range(y, 1, 2) - 1, f32)`.
#   input logits : f32[B]
#   input label : f32[B]
#   metric loss = mean(sigmoid_cross_entropy(logits, label))
function sigmoid_cross_entropy(logits : T[...], label : T[...]) {
  above = logits > 0
  share = select(above, 1 - expect_range(label, 0, 1), -label)
  return softplus(select(above, -logits, logits)) + counted(logits, share) * share
}

# (x - y)^2, by element.
#   input x : f32[B]
#   input y : f32[B]
#   metric loss = mean(squared_error(x, y))
function squared_error(x, y) { return square(x - y) }

# |x - y|, by element.
#   input x : f32[B]
#   input y : f32[B]
#   metric loss = mean(absolute_error(x, y))
function absolute_error(x, y) { return abs(x - y) }

# 0.5 e^2 where |e| = |x - y| is at most delta, else delta * (|e| - 0.5 delta) (Huber 1964).
#   input x : f32[B]
#   input y : f32[B]
#   metric loss = mean(huber(x, y))
function huber(x, y, delta = 1.0) {
  error = x - y
  inside = clip(error, -delta, delta)
  return inside * (error - 0.5 * inside)
}

# ---- a loss per example as one number; the same for batches that are split over towers ----

# sum(loss * weights) over the number of elements, whatever their weights are.
#   input x : f32[B]
#   input w : f32[B]
#   metric loss = sum_over_batch_size(square(x), w)
function sum_over_batch_size(loss, weights = 1) { return mean(loss * weights) }

# sum(loss * weights) over the number of elements whose weight is not 0: examples without a weight do not count. 0 if
# there are none.
#   input x : f32[B]
#   input w : f32[B]
#   metric loss = sum_by_nonzero_weights(square(x), w)
function sum_by_nonzero_weights(loss, weights) {
  counts = broadcast(weights, shape(loss)) != 0
  return ratio(sum(loss * weights), sum(cast(counts, dtype(loss))))
}

# sum(loss * weights) over the sum of the weights; 0 if that is 0.
#   input x : f32[B]
#   input w : f32[B]
#   metric loss = weighted_mean(square(x), w)
function weighted_mean(loss, weights) {
  return ratio(sum(loss * weights), sum(broadcast(weights, shape(loss))))
}

# Is the largest logit the label's? Never where the label is no class.
#   input logits : f32[B, 3]
#   input label : i32[B]
#   metric accuracy = mean(correct(logits, label))
function correct(logits, label : integers) {
  id = label if dtype(label) == i64 else cast(label, i32)
  return cast(argmax(logits, axis = -1), dtype(id)) == id
}

# ---- noise ----

# In training each element is 0 with probability `rate`, and the others grow by 1 / (1 - rate) to make up for it
# (Srivastava et al. 2014).
#   input x : f32[B, 4]
#   predict y = dropout(x, 0.1)
function dropout(x, rate : fraction = 0.5) {
  if not training or rate == 0 { return x }
  kept = random_uniform(type(x)) >= rate
  return select(kept, x / (1.0 - rate), 0)
}

# ---- order ----

# The elements along an axis in ascending order, NaN behind all others; `descending`: in the other, NaN first.
#   input x : f32[B, 4]
#   predict y = sort(x)
function sort(x, axis = -1, descending = false) { return take_along(x, argsort(x, axis, descending), axis) }

# [values, places] of the k greatest along the last axis: the greatest first, of equals the first.
#   input x : f32[B, 4]
#   values, places = top_k(x, 2)
#   predict y = values                # f32[B, 2]
function top_k(x, k : int) {
  places = argsort(x, -1, descending = true)[..., 0:k]
  return [take_along(x, places, -1), places]
}

# Is the label among the k largest logits? Of equals the first are taken, as by top_k: with k = 1 it is correct.
#   input logits : f32[B, 5]
#   input label : i32[B]
#   metric accuracy = mean(in_top_k(logits, label, 2))
function in_top_k(logits, label : integers, k : int) {
  id = label if dtype(label) == i64 else cast(label, i32)
  return any(cast(top_k(logits, k)[1], dtype(id)) == expand(id), axis = -1)
}

# SPDX-License-Identifier: Apache-2.0

# Always in scope: functions made of the primitive ones.

# ---- activations; between equals max and min give their gradient to the left: relu has none at 0 ----

function relu(x) { return max(0, x) }
function relu6(x) { return min(6, max(0, x)) }
function leaky_relu(x, slope = 0.01) { return select(x > 0, x, x * slope) }
function elu(x, alpha = 1.0) { return select(x > 0, x, alpha * expm1(select(x > 0, 0, x))) }
function selu(x) { return 1.0507009873554805 * elu(x, 1.6732632423543772) }
function gelu(x) { return 0.5 * x * (1 + erf(x * 0.7071067811865476)) }
function silu(x) { return x * sigmoid(x) }
function mish(x) { return x * tanh(softplus(x)) }
function softsign(x) { return x / (1 + abs(x)) }
function hard_sigmoid(x) { return relu6(x + 3) / 6 }

# ---- shapes ----

# A new axis of size 1 in front of axis `axis`; -1: behind the last.
function expand(x, axis = -1) {
  at = axis if axis >= 0 else axis + rank(x) + 1
  return reshape(x, shape(x)[0:at] + [1] + shape(x)[at:])
}

# Without the axis `axis`, which must have size 1.
function squeeze(x, axis) {
  at = axis if axis >= 0 else axis + rank(x)
  return reshape(x, shape(x)[0:at] + shape(x)[at + 1:])
}

# All axes but the first as one.
function flatten(x) { return reshape(x, [shape(x)[0], -1]) }

# A row of 0s with a 1 at the place that x says.
function one_hot(x, depth : int, to = f32) {
  known = expect_range(x, 0, depth - 1)
  id = cast(known, i32) if dtype(x) == u8 else known
  return cast(expand(id) == iota(dtype(id)[depth]), to)
}

# The rows of a table that `ids` name: of an embedding.
function lookup(table : T[rows, units], ids) { return gather(table, ids) }

# ---- statistics ----

function variance(x, axis = none, keep = false) {
  center = mean(x, axis = axis, keep = true)
  return mean(square(x - center), axis = axis, keep = keep)
}

function stddev(x, axis = none, keep = false) { return sqrt(variance(x, axis, keep)) }
function clip(x, low, high) { return min(max(x, low), high) }
function norm(x, axis = none, keep = false) { return sqrt(sum(square(x), axis = axis, keep = keep)) }
function l2_normalize(x, axis = -1, epsilon = 1e-12) {
  return x * rsqrt(max(sum(square(x), axis = axis, keep = true), epsilon))
}

# ---- probabilities ----

# The largest element is taken off first: exp cannot overflow, and the result is the same.
function softmax(x, axis = -1) {
  e = exp(x - stop_gradient(max(x, axis = axis, keep = true)))
  return e / sum(e, axis = axis, keep = true)
}

function log_softmax(x, axis = -1) {
  shifted = x - stop_gradient(max(x, axis = axis, keep = true))
  return shifted - log(sum(exp(shifted), axis = axis, keep = true))
}

# An infinite largest element is not taken off: exp gives what it should, and Inf - Inf would not.
function logsumexp(x, axis = -1, keep = false) {
  top = stop_gradient(max(x, axis = axis, keep = true))
  base = select(is_finite(top), top, 0)
  y = log(sum(exp(x - base), axis = axis, keep = true)) + base
  return y if keep else reshape(y, shape(max(x, axis = axis)))
}

# ---- losses: one number per example ----

# -log softmax(logits)[label]. `label` holds class numbers of any integer type, or one probability per class.
function softmax_cross_entropy(logits : T[..., classes], label) {
  shifted = logits - stop_gradient(max(logits, axis = -1, keep = true))
  total = log(sum(exp(shifted), axis = -1))
  if dtype(label) == T { return sum(label, axis = -1) * total - sum(label * shifted, axis = -1) }
  known = expect_range(label, 0, classes - 1)
  id = cast(known, i32) if dtype(label) == u8 else known
  hit = expand(id) == iota(dtype(id)[classes])
  return total - sum(select(hit, shifted, 0), axis = -1)
}

# -label*log(sigmoid(x)) - (1 - label)*log(1 - sigmoid(x)), elementwise
function sigmoid_cross_entropy(logits : T[...], label : T[...]) { return softplus(logits) - logits * label }

function squared_error(x, y) { return square(x - y) }
function absolute_error(x, y) { return abs(x - y) }
function huber(x, y, delta = 1.0) {
  error = x - y
  inside = clip(error, -delta, delta)
  return inside * (error - 0.5 * inside)
}

# ---- a loss per example as one number; the same for batches that are split over towers ----

# Over the number of elements, whatever their weights are.
function sum_over_batch_size(loss, weights = 1) { return mean(loss * weights) }

# Over the number of elements whose weight is not 0: examples without a weight do not count. 0 if there are none.
function sum_by_nonzero_weights(loss, weights) {
  counts = broadcast(weights, shape(loss)) != 0
  return ratio(sum(loss * weights), sum(cast(counts, dtype(loss))))
}

# Over the sum of the weights.
function weighted_mean(loss, weights) {
  return ratio(sum(loss * weights), sum(broadcast(weights, shape(loss))))
}

# Is the largest logit the label's?
function correct(logits, label) { return argmax(logits, axis = -1) == cast(label, i32) }

# ---- noise ----

# In training: each element is 0 with probability `rate`, the others grow to make up for it.
function dropout(x, rate = 0.5) {
  if not training or rate == 0 { return x }
  kept = random_uniform(type(x)) >= rate
  return select(kept, x / (1.0 - rate), 0)
}

# ---- order ----

# The elements along an axis in ascending order, NaN behind all others; `descending`: in the other, NaN first.
function sort(x, axis = -1, descending = false) { return take_along(x, argsort(x, axis, descending), axis) }

# [values, places] of the k greatest along the last axis: the greatest first, of equals the first.
function top_k(x, k : int) {
  places = argsort(x, -1, descending = true)[..., 0:k]
  return [take_along(x, places, -1), places]
}

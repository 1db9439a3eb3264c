# Normalisations, residual blocks, experts, bags of ids, noise.

# ---- normalisations ----

# (x - mean) / standard deviation of each column, the last axis, over the rows that training has seen so far: after whole epochs those
# of all of them, as Keras' Normalization and sklearn's StandardScaler fit; what is evaluated or predicted adds nothing. NaN, which
# stands for what is missing, is not counted, and becomes 0, the mean. The gradient takes both for constants. With training = false
# what training sees adds nothing either.
#   input x : f32[B, 8]
#   predict y = nn.running_norm(x)
layer running_norm(x : T[...S, K], epsilon : nonnegative = 1e-7, training = training) {
  state count  : f64[K] = zeros()
  state center : f64[K] = zeros()
  state spread : f64[K] = zeros()      # the sum of the squares of what lies beside the center
  known = not is_nan(x)
  n, mean_of_all, squares = [count, center, spread]
  if training {
    axes = []
    for i in 0..size(S) { axes = axes + [i] }
    wide = stop_gradient(cast(x, f64))
    here = sum(cast(known, f64), axis = axes)
    mean_here = ratio(sum(select(known, wide, 0), axis = axes), here)
    beside = select(known, wide - mean_here, 0)
    off = mean_here - center
    n = count + here
    mean_of_all = center + off * ratio(here, n)      # Chan, Golub, LeVeque 1979
    squares = spread + sum(square(beside), axis = axes) + square(off) * ratio(count * here, n)
    count  <- n
    center <- mean_of_all
    spread <- squares
  }
  width = max(sqrt(ratio(squares, n)), epsilon)
  return select(known, (x - cast(mean_of_all, T)) / cast(width, T), 0)
}

# x / sqrt(mean(x^2) + epsilon) * scale along the last axis (Zhang, Sennrich 2019).
#   input x : f32[B, 8]
#   predict y = nn.rms_norm(x)
layer rms_norm(x : T[..., K], epsilon : fraction = 1e-6) {
  var scale : T[K] = ones()
  return x * rsqrt(mean(square(x), axis = -1, keep = true) + epsilon) * scale
}

# (x - mean) / sqrt(variance + epsilon) * scale + shift, where each row and each of `groups` of channels, which lie along the last
# axis, has statistics of its own (Wu, He 2018).
#   input x : f32[B, 4, 4, 8]
#   predict y = nn.group_norm(x, groups = 2)
layer group_norm(x : T[N, ...S, K], groups : int = 32, epsilon : fraction = 1e-5) {
  var scale : T[K] = ones()
  var shift : T[K] = zeros()
  apart = reshape(x, [N] + S + [groups, K / groups])
  axes = [size(S) + 2]
  for i in 0..size(S) { axes = axes + [i + 1] }
  center = apart - mean(apart, axis = axes, keep = true)
  even = center * rsqrt(mean(square(center), axis = axes, keep = true) + epsilon)
  return reshape(even, [N] + S + [K]) * scale + shift
}

# group_norm with each channel as its own group (Ulyanov, Vedaldi, Lempitsky 2016).
#   input x : f32[B, 4, 4, 8]
#   predict y = nn.instance_norm(x)
layer instance_norm(x : T[N, ...S, K], epsilon : fraction = 1e-5) { return group_norm(x, K, epsilon) }

# A dense layer whose kernel is gain * v / |v|, for each unit: its length is learned by itself (Salimans, Kingma 2016).
#   input x : f32[B, 8]
#   predict y = nn.weight_norm(x, 4)
layer weight_norm(x : T[..., K], units : int, activation = identity, use_bias = true, initial = glorot_uniform,
                  precision = none) with precision = precision {
  var direction : T[K, units] = initial()
  var gain : T[units] = ones()
  kernel = direction * (gain / norm(direction, axis = 0))
  if not use_bias { return activation(x @ kernel) }
  var bias : T[units] = zeros()
  return activation(x @ kernel + bias)
}

# ---- residual blocks of images ----

# Two convolutions of 3 by 3, and what came in on top: relu(x + norm(conv(relu(norm(conv(x)))))) (He et al. 2016). Where the
# channels or the size change, x goes through a convolution of 1 by 1. `training` is that of batch_norm.
#   input x : f32[B, 8, 8, 4]
#   predict y = nn.residual_block(x, 8, stride = 2)       # f32[B, 4, 4, 8]
layer residual_block(x : T[N, H, W, C], filters : int, stride = 1, precision = none,
                     training = training) with precision = precision {
  first = batch_norm(conv2d(x, filters, stride = stride, use_bias = false), training = training)
  second = batch_norm(conv2d(relu(first), filters, use_bias = false), training = training)
  if stride == 1 and C == filters { return relu(x + second) }
  past = batch_norm(conv2d(x, filters, size = 1, stride = stride, use_bias = false), training = training)
  return relu(past + second)
}

# The same through a narrow place: 1 by 1 to `filters`, 3 by 3, 1 by 1 to four times as many (He et al. 2016).
#   input x : f32[B, 8, 8, 4]
#   predict y = nn.bottleneck_block(x, 2)                 # f32[B, 8, 8, 8]
layer bottleneck_block(x : T[N, H, W, C], filters : int, stride = 1, precision = none,
                       training = training) with precision = precision {
  first = batch_norm(conv2d(x, filters, size = 1, use_bias = false), training = training)
  second = batch_norm(conv2d(relu(first), filters, stride = stride, use_bias = false), training = training)
  third = batch_norm(conv2d(relu(second), 4 * filters, size = 1, use_bias = false), training = training)
  if stride == 1 and C == 4 * filters { return relu(x + third) }
  past = batch_norm(conv2d(x, 4 * filters, size = 1, stride = stride, use_bias = false), training = training)
  return relu(past + third)
}

# Channels weighed by what the whole image has of them: x * sigmoid(dense(relu(dense(mean(x))))) (Hu, Shen, Sun 2018).
#   input x : f32[B, 4, 4, 8]
#   predict y = nn.squeeze_excite(x, 2)
layer squeeze_excite(x : T[N, H, W, C], units : int, precision = none) with precision = precision {
  narrow = dense(mean(x, axis = [1, 2]), units, activation = relu)
  weight = dense(narrow, C, activation = sigmoid)
  return x * reshape(weight, [N, 1, 1, C])
}

# ---- experts ----

# A mixture of experts over the tokens of [N, L, K]: each token goes to the `k` of them that its gate likes best, weighed by the
# gate's softmax over those k (Shazeer et al. 2017). Of one row an expert takes `capacity` tokens at most (none: all), first those
# whose first choice it is, in their order; what it does not take adds nothing (Lepikhin et al. 2021). Gives [y, balance]: balance,
# experts * sum(share of first choices * mean of the softmax), is 1 where all experts have as much to do, and is trained as a small
# part of the loss (Fedus, Zoph, Shazeer 2022).
#   input x : f32[B, 6, 8]
#   y, balance = nn.mixture_of_experts(x, experts = 4, hidden = 16, k = 2, capacity = 4)
#   train mean(square(y - x)) + 0.01 * balance with sgd()
layer mixture_of_experts(x : T[N, L, K], experts : int, hidden : int, k : int = 2, capacity = none, activation = gelu,
                         precision = none) with precision = precision {
  var gate : T[K, experts] = glorot_uniform()
  var up : T[experts, K, hidden] = glorot_uniform()
  var up_bias : T[experts, 1, hidden] = zeros()
  var down : T[experts, hidden, K] = glorot_uniform()
  var down_bias : T[experts, 1, K] = zeros()
  room = L if capacity == none else capacity
  logits = x @ gate
  values, chosen = top_k(logits, k)
  weights = softmax(values)
  taken = cast(broadcast(0, [N, 1, experts]), i32)
  combine = cast(broadcast(0.0, [N, L, experts, room]), T)
  for j in 0..k {
    mine = expand(chosen[:, :, j]) == iota(i32[experts])
    many = cast(mine, i32)
    place = cumsum(many, axis = 1, exclusive = true) + taken
    taken = taken + sum_of_ints(many)
    slot = expand(place) == iota(i32[room]) and expand(mine)
    combine = combine + select(slot, reshape(weights[:, :, j], [N, L, 1, 1]), 0)
  }
  slots = reshape(combine, [N, L, experts * room])
  goes = cast(slots != 0, T)
  given = reshape(transpose(goes) @ x, [N, experts, room, K])
  made = activation(given @ up + up_bias) @ down + down_bias
  y = slots @ reshape(made, [N, experts * room, K])
  first = mean(cast(expand(chosen[:, :, 0]) == iota(i32[experts]), T), axis = [0, 1])
  balance = experts * sum(first * mean(softmax(logits), axis = [0, 1]))
  return [y, balance]
}

# For mixture_of_experts: the sum along axis 1, which stays, as i32.
function sum_of_ints(x) { return cast(sum(x, axis = 1, keep = true), i32) }

# ---- bags of ids ----

# The sum of the rows of a learned table that the last axis of `ids` names, each times its weight; with join = "mean" divided by
# how many they are. An id that is `padding` counts for nothing; a bag of nothing is 0. embedding_lookup_sparse divides by the weights.
# Other ids that name no row, which lookup says, are rows of zeros that count.
# With storage = bf16 or f16 the table is kept in 16 bits.
#   input ids : i32[B, 5]
#   predict y = nn.embedding_bag(ids, size = 10, units = 4, join = "mean", padding = 0)   # f32[B, 4]
layer embedding_bag(ids : integers, size : int, units : int, join : "sum" or "mean" = "sum", padding = none, weights = none, initial = uniform, to = f32,
                    storage = none) {
  var table : to[size, units] = initial() storage(storage)
  rows = lookup(table, ids)
  share = cast(ids != (-1 if padding == none else padding), to)
  weight = share if weights == none else share * weights
  total = sum(rows * expand(weight), axis = -2)
  if join == "sum" { return total }
  return total / max(sum(expand(share), axis = -2), 1)
}

# ---- sparse rows ----

# For sparse rows: those of `table` by number, zeros for -1.
function some_rows(table, ids) { return gather(table, max(expect_range(ids, -1, shape(table)[0] - 1), -1)) }

# What tf.nn.embedding_lookup_sparse gives: the rows of `table` that the last axis of `ids` names, each times its weight, joined as
# their "sum", as "mean", divided by the sum of the weights, or as "sqrtn", divided by the root of the sum of their squares. An id
# below 0 names nothing, as the padding of a sparse matrix (`x.npz:places/16`). A row of nothing is 0. The table's gradient is sparse.
# An id beyond the table is an error in the data of inputs, and a row of zeros that counts where it is computed.
#   input ids : i32[B, 5]
#   input weights : f32[B, 5]
#   var table : f32[10, 4] = uniform()
#   predict y = nn.embedding_lookup_sparse(table, ids, weights, combiner = "sqrtn")   # f32[B, 4]
function embedding_lookup_sparse(table, ids : integers, weights = none, combiner : "sum" or "mean" or "sqrtn" = "mean") {
  there = cast(ids >= 0, dtype(table))
  weight = there if weights == none else select(ids >= 0, weights, 0)
  total = sum(some_rows(table, ids) * expand(weight), axis = -2)
  if combiner == "sum" { return total }
  share = sum(weight, axis = -1) if combiner == "mean" else sqrt(sum(square(weight), axis = -1))
  some = expand(any(ids >= 0, axis = -1))
  return select(broadcast(some, shape(total)), total / select(some, expand(share), 1), 0)
}

# What tf.sparse.sparse_dense_matmul gives of rows with few values: `values` stand in the columns `places`, those below 0 nowhere;
# [B, J] of both and [K, M] make [B, M], and no row becomes dense. Places beyond the kernel are nowhere, too, where they are computed.
#   input places : i32[B, 5]
#   input values : f32[B, 5]
#   var kernel : f32[10, 4] = glorot_uniform()
#   predict y = nn.sparse_dense_matmul(places, values, kernel)   # f32[B, 4]
function sparse_dense_matmul(places : integers, values, kernel) {
  return sum(some_rows(kernel, places) * expand(select(places >= 0, values, 0)), axis = -2)
}

# ---- loss scaling ----

# Dynamic loss scaling (Micikevicius et al. 2018): the list of a loss that is worth `loss`, and has the gradients of scale * loss; the
# scale; and whether all gradients by `variables` are finite. Where they are not, the scale is multiplied by `backoff`; after `every`
# steps in a row where they are, by `growth`. For [unscale(scale, finite), ...], which leaves out the steps where they are not.
#   input x : f32[B, 3]
#   var w : f32[3] = ones()
#   loss, scale, finite = nn.loss_scale(mean(square(sum(x * w, axis = 1))), [w])
#   train loss with [unscale(scale, finite), adam(0.01)]
layer loss_scale(loss, variables : list, initial = 32768.0, growth = 2.0, backoff = 0.5, every : int = 2000) {
  state scale : f32[] = initial
  state good : i64[] = 0
  rest = loss - stop_gradient(loss)      # 0, but for its gradient
  by = cast(scale, dtype(loss))
  worth = select(is_finite(loss), stop_gradient(loss) + by * rest, by * loss)
  finite = is_finite(loss)
  for g in gradient(worth, variables) { finite = finite and all(is_finite(g)) }
  grows = good + 1 >= every
  larger = scale * growth                # not beyond what is finite: Inf would never come back
  scale <- select(finite, select(grows and is_finite(larger), larger, scale), scale * backoff)
  good <- select(finite and not grows, good + 1, 0)
  return [worth, scale, finite]
}

# ---- noise, in training alone ----

# dropout of whole channels, the last axis, of each row (Tompson et al. 2015).
#   input x : f32[B, 4, 4, 8]
#   predict y = nn.spatial_dropout(x, 0.1)
function spatial_dropout(x : T[N, ...S, K], rate : fraction = 0.5) {
  if not training or rate == 0 { return x }
  lone = [N]
  for d in S { lone = lone + [1] }
  kept = random_uniform(T[...lone, K]) >= rate
  return select(broadcast(kept, shape(x)), x / (1.0 - rate), 0)
}

# All of a row is 0 with the probability `rate`, as of a branch that is added to what goes past it (Huang et al. 2016).
#   input x : f32[B, 8]
#   predict y = x + nn.drop_path(relu(x), 0.1)
function drop_path(x : T[N, ...S], rate : fraction = 0.5) {
  if not training or rate == 0 { return x }
  lone = [N]
  for d in S { lone = lone + [1] }
  kept = random_uniform(T[...lone]) >= rate
  return select(broadcast(kept, shape(x)), x / (1.0 - rate), 0)
}

# x plus normal noise.
#   input x : f32[B, 8]
#   predict y = nn.gaussian_noise(x, 0.1)
function gaussian_noise(x, stddev = 0.1) {
  if not training { return x }
  return x + stddev * random_normal(type(x))
}

# x times normal noise of mean 1 and the variance rate / (1 - rate) (Srivastava et al. 2014, section 10).
#   input x : f32[B, 8]
#   predict y = nn.gaussian_dropout(x, 0.1)
function gaussian_dropout(x, rate : fraction = 0.5) {
  if not training or rate == 0 { return x }
  return x * (1 + sqrt(rate / (1.0 - rate)) * random_normal(type(x)))
}

# dropout for selu: what is dropped is selu's least value, and all is scaled so that mean and variance stay (Klambauer et al. 2017).
#   input x : f32[B, 8]
#   predict y = nn.alpha_dropout(selu(x), 0.1)
function alpha_dropout(x, rate : fraction = 0.5) {
  if not training or rate == 0 { return x }
  least = -1.7580993408473766
  kept = random_uniform(type(x)) >= rate
  a = 1.0 / sqrt((1 - rate) * (1 + rate * least * least))
  return a * select(kept, x, least) - a * least * rate
}

# SPDX-License-Identifier: Apache-2.0

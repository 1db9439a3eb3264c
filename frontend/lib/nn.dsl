# Layers: `use nn`. `precision` is that of their products; none leaves it to the caller.

# activation(x @ kernel + bias) along the last axis.
#   input x : f32[B, 8]
#   predict y = nn.dense(x, 4, activation = relu)     # f32[B, 4]
layer dense(x : T[..., K], units : int, activation = identity, use_bias = true, initial = glorot_uniform,
            precision = none) with precision = precision {
  var kernel : T[K, units] = initial()
  if not use_bias { return activation(x @ kernel) }
  var bias : T[units] = zeros()
  return activation(x @ kernel + bias)
}

# Dense layers, one after another: `units` lists their sizes.
#   input x : f32[B, 8]
#   predict y = nn.mlp(x, [16, 4])                    # f32[B, 4]
layer mlp(x, units : list, activation = relu, precision = none) with precision = precision {
  part = x
  for n in units { part = dense(part, n, activation) }
  return part
}

# A learned row of numbers for each of `size` ids, kept in 16 bits with storage = bf16 or f16; zeros, not learned, for the id `padding`.
# Other ids that name no row are those of lookup.
#   input ids : i32[B, 5]
#   predict y = nn.embedding(ids, size = 10, units = 4)   # f32[B, 5, 4]
layer embedding(ids : integers, size : int, units : int, initial = uniform, padding = none, storage = none) {
  var table : f32[size, units] = initial() storage(storage)
  return lookup(table, ids) if padding == none else select(expand(ids != padding), lookup(table, ids), 0)
}

# (x - mean) / sqrt(variance + epsilon) * scale + shift along the last axis (Ba, Kiros, Hinton 2016).
#   input x : f32[B, 8]
#   predict y = nn.layer_norm(x)
layer layer_norm(x : T[..., K], epsilon : fraction = 1e-5) {
  var scale : T[K] = ones()
  var shift : T[K] = zeros()
  center = mean(x, axis = -1, keep = true)
  spread = mean(square(x - center), axis = -1, keep = true)
  return (x - center) * rsqrt(spread + epsilon) * scale + shift
}

# (x - mean) / sqrt(variance + epsilon) * scale + shift of each channel (Ioffe, Szegedy 2015). In training the statistics
# are those of the whole batch, over all towers, with `synchronize = false` those of each tower's rows (tf.distribute's
# BatchNormalization), so that results depend on the number of towers; running averages, then of the towers' means, serve
# evaluation and prediction: moving = momentum * moving + (1 - momentum) * that of the batch, as in Keras (torch's momentum is 1
# less this one), where the variance divides by the number of values (torch's running_var by one less). With training = false they
# serve in training, too, and stay as they are: with freeze for scale and shift that is Keras' trainable = False.
#   input x : f32[B, 8]
#   h = nn.dense(nn.batch_norm(x, training = false), 4)     # learned before: --init-from
#   train mean(square(h - 1)) with [freeze("h.batch_norm.*"), sgd()]
layer batch_norm(x : T[...S, K], momentum : fraction = 0.99, epsilon : fraction = 1e-3, synchronize = true, training = training) {
  var scale : T[K] = ones()
  var shift : T[K] = zeros()
  state moving_mean : T[K] = zeros()
  state moving_variance : T[K] = ones()
  if not training { return (x - moving_mean) * rsqrt(moving_variance + epsilon) * scale + shift }
  axes = []
  for i in 0..size(S) { axes = axes + [i] }
  center, spread = moments(x, axes)
  all_center = center
  all_spread = spread
  if not synchronize {
    center = local(center)
    spread = local(spread)
    all_center = all_reduce(center, "mean")
    all_spread = all_reduce(spread, "mean")
  }
  moving_mean <- momentum * moving_mean + (1 - momentum) * all_center
  moving_variance <- momentum * moving_variance + (1 - momentum) * all_spread
  return (x - center) * rsqrt(spread + epsilon) * scale + shift
}

# Images are [B, height, width, channels]. `padding` is that of conv; `dilation` is how far apart the places of the kernel
# lie; `size`, `stride` and `dilation` are numbers, or lists of one for each axis; channels of one group make filters of that
# group. A kernel that does not fit into the padded image is an error.
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.conv2d(x, 16, stride = 2)          # f32[B, 4, 4, 16]
layer conv2d(x : T[N, H, W, C], filters : int, size = 3, stride = 1, padding = "same", activation = identity,
             initial = glorot_uniform, precision = none, use_bias = true, groups = 1,
             dilation = 1) with precision = precision {
  var kernel : T[...per_axis(size, 2), C / groups, filters] = initial()
  if not use_bias { return activation(conv(x, kernel, stride, padding, dilation, groups = groups)) }
  var bias : T[filters] = zeros()
  return activation(conv(x, kernel, stride, padding, dilation, groups = groups) + bias)
}

# As conv2d, of sequences [B, length, channels].
#   input x : f32[B, 8, 3]
#   predict y = nn.conv1d(x, 16)                      # f32[B, 8, 16]
layer conv1d(x : T[N, L, C], filters : int, size = 3, stride = 1, padding = "same", activation = identity,
             initial = glorot_uniform, precision = none, use_bias = true, groups = 1,
             dilation = 1) with precision = precision {
  var kernel : T[...per_axis(size, 1), C / groups, filters] = initial()
  if not use_bias { return activation(conv(x, kernel, stride, padding, dilation, groups = groups)) }
  var bias : T[filters] = zeros()
  return activation(conv(x, kernel, stride, padding, dilation, groups = groups) + bias)
}

# As conv2d, of volumes [B, depth, height, width, channels].
#   input x : f32[B, 4, 4, 4, 3]
#   predict y = nn.conv3d(x, 5)                       # f32[B, 4, 4, 4, 5]
layer conv3d(x : T[N, D, H, W, C], filters : int, size = 3, stride = 1, padding = "same", activation = identity,
             initial = glorot_uniform, precision = none, use_bias = true, groups = 1,
             dilation = 1) with precision = precision {
  var kernel : T[...per_axis(size, 3), C / groups, filters] = initial()
  if not use_bias { return activation(conv(x, kernel, stride, padding, dilation, groups = groups)) }
  var bias : T[filters] = zeros()
  return activation(conv(x, kernel, stride, padding, dilation, groups = groups) + bias)
}

# As conv2d, where each channel makes `multiplier` filters of its own.
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.depthwise(x, 2)                    # f32[B, 8, 8, 6]
layer depthwise(x : T[N, H, W, C], multiplier = 1, size = 3, stride = 1, padding = "same", activation = identity,
                initial = glorot_uniform, precision = none, use_bias = true,
                dilation = 1) with precision = precision {
  var kernel : T[...per_axis(size, 2), 1, C * multiplier] = initial()
  if not use_bias { return activation(conv(x, kernel, stride, padding, dilation, groups = C)) }
  var bias : T[C * multiplier] = zeros()
  return activation(conv(x, kernel, stride, padding, dilation, groups = C) + bias)
}

# The way back of a conv2d that makes x of images `stride` times as high and wide; without padding, of those that its
# places cover.
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.conv_transpose(x, 16, stride = 2)  # f32[B, 16, 16, 16]
layer conv_transpose(x : T[N, H, W, C], filters : int, size = 3, stride = 1, padding = "same", activation = identity,
                     initial = glorot_uniform, precision = none, use_bias = true) with precision = precision {
  var kernel : T[...per_axis(size, 2), filters, C] = initial()
  whole = covered([H, W], size, stride, padding)
  if not use_bias { return activation(transposed_conv(x, kernel, whole, stride, padding)) }
  var bias : T[filters] = zeros()
  return activation(transposed_conv(x, kernel, whole, stride, padding) + bias)
}

# As conv_transpose, of sequences [B, length, channels].
#   input x : f32[B, 8, 3]
#   predict y = nn.conv_transpose1d(x, 16, stride = 2)  # f32[B, 16, 16]
layer conv_transpose1d(x : T[N, L, C], filters : int, size = 3, stride = 1, padding = "same", activation = identity,
                       initial = glorot_uniform, precision = none, use_bias = true) with precision = precision {
  var kernel : T[...per_axis(size, 1), filters, C] = initial()
  whole = covered([L], size, stride, padding)
  if not use_bias { return activation(transposed_conv(x, kernel, whole, stride, padding)) }
  var bias : T[filters] = zeros()
  return activation(transposed_conv(x, kernel, whole, stride, padding) + bias)
}

# As conv_transpose, of volumes [B, depth, height, width, channels].
#   input x : f32[B, 4, 4, 4, 3]
#   predict y = nn.conv_transpose3d(x, 5, stride = 2)   # f32[B, 8, 8, 8, 5]
layer conv_transpose3d(x : T[N, D, H, W, C], filters : int, size = 3, stride = 1, padding = "same", activation = identity,
                       initial = glorot_uniform, precision = none, use_bias = true) with precision = precision {
  var kernel : T[...per_axis(size, 3), filters, C] = initial()
  whole = covered([D, H, W], size, stride, padding)
  if not use_bias { return activation(transposed_conv(x, kernel, whole, stride, padding)) }
  var bias : T[filters] = zeros()
  return activation(transposed_conv(x, kernel, whole, stride, padding) + bias)
}

# For conv_transpose: the axes of what makes x, whose axes are `axes`.
function covered(axes : list[n], size, stride, padding) {
  sizes = per_axis(size, n)
  strides = per_axis(stride, n)
  whole = []
  for i in 0..n { whole = whole + [axes[i] * strides[i] + (0 if padding == "same" else max(sizes[i] - strides[i], 0))] }
  return whole
}

# As max_pool2d, of sequences.
#   input x : f32[B, 8, 3]
#   predict y = nn.max_pool1d(x)                      # f32[B, 4, 3]
function max_pool1d(x : T[N, L, C], size = 2, stride = none, padding = "valid") {
  return window_max(x, size, size if stride == none else stride, padding)
}

# The greatest of each window of images, channel by channel. `size`, `stride` (none: the size, so that windows do not
# overlap) and `padding`, that of conv, are those of windows; a list has one for each axis. What does not fill a window is
# left out; a window that does not fit into the padded image is an error.
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.max_pool2d(x)                      # f32[B, 4, 4, 3]
function max_pool2d(x : T[N, H, W, C], size = 2, stride = none, padding = "valid") {
  return window_max(x, size, size if stride == none else stride, padding)
}

# As max_pool2d, of volumes.
#   input x : f32[B, 4, 4, 4, 3]
#   predict y = nn.max_pool3d(x)                      # f32[B, 2, 2, 2, 3]
function max_pool3d(x : T[N, D, H, W, C], size = 2, stride = none, padding = "valid") {
  return window_max(x, size, size if stride == none else stride, padding)
}

# As mean_pool2d, of sequences.
#   input x : f32[B, 8, 3]
#   predict y = nn.mean_pool1d(x)                     # f32[B, 4, 3]
function mean_pool1d(x : T[N, L, C], size = 2, stride = none, padding = "valid") {
  return mean_windows(x, size, size if stride == none else stride, padding)
}

# The mean of what a window sees, of integers in f32: padding does not count; the rest as of max_pool2d.
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.mean_pool2d(x)                     # f32[B, 4, 4, 3]
function mean_pool2d(x : T[N, H, W, C], size = 2, stride = none, padding = "valid") {
  return mean_windows(x, size, size if stride == none else stride, padding)
}

# As mean_pool2d, of volumes.
#   input x : f32[B, 4, 4, 4, 3]
#   predict y = nn.mean_pool3d(x)                     # f32[B, 2, 2, 2, 3]
function mean_pool3d(x : T[N, D, H, W, C], size = 2, stride = none, padding = "valid") {
  return mean_windows(x, size, size if stride == none else stride, padding)
}

# For mean_pool2d: the means of windows of any number of axes.
function mean_windows(x : T[N, ...S, C], size, stride, padding) {
  real = f64 if dtype(x) == f64 else f32
  seen = window_sum(cast(broadcast(1.0, [1] + S + [1]), real), size, stride, padding)
  return window_sum(cast(x, real), size, stride, padding) / seen
}

# Images `factor` times as high and wide: each pixel so often, or, `bilinear`, what lies between the centres of pixels;
# beyond those at the edges it is theirs.
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.upsample(x, 2)                     # f32[B, 16, 16, 3]
function upsample(x : T[N, H, W, C], factor : int = 2, bilinear = false) {
  if not bilinear {
    apart = reshape(x, [N, H, 1, W, 1, C])
    return reshape(broadcast(apart, [N, H, factor, W, factor, C]), [N, H * factor, W * factor, C])
  }
  high = between(T, H, factor) @ reshape(x, [N, H, W * C])
  wide = between(T, W, factor) @ reshape(high, [N * H * factor, W, C])
  return reshape(wide, [N, H * factor, W * factor, C])
}

# For upsample: how much each of `size` pixels is in each of `factor` times as many.
function between(T, size, factor) {
  at = (iota(T[size * factor, size], axis = 0) + 0.5) / factor - 0.5
  return max(1 - abs(clip(at, 0, size - 1) - iota(T[size * factor, size], axis = 1)), 0)
}

# Over sequences [B, length, features]: h = activation([x_t, h] @ kernel + bias), from 0 on (Elman 1990). Gives the last h,
# or all of them with `sequence = true`; `reverse = true` goes from the last step to the first. With `lengths`, integers
# [B], a row has so many steps: behind them h stays as it is, 0 is given, and x may be anything. Of an input they are from 0 to the length,
# or its data is refused; computed ones below 0 are none, those beyond the length all. A `scan`: one step is compiled.
#   input x : f32[B, 5, 3]
#   input n : i32[B]
#   predict y = nn.rnn(x, 4, sequence = true, lengths = n)    # f32[B, 5, 4]
layer rnn(x : T[N, L, K], units : int, sequence = false, reverse = false, lengths : U[N] = none, activation = tanh,
          precision = none) with precision = precision {
  var kernel : T[K + units, units] = glorot_uniform()
  var bias : T[units] = zeros()
  h = broadcast(cast(0.0, T), [N, units])
  all_h = scan(reverse = reverse) h over x_t in unpadded(x, lengths), t in broadcast(iota(i32[L]), [N, L]) {
    next = activation(concat([x_t, h], axis = 1) @ kernel + bias)
    h = within(t, lengths, next, h)
    return within(t, lengths, next, cast(0.0, T))
  }
  return all_h if sequence else h
}

# For layers over sequences: x, and 0 in steps that a row does not have: NaN there would come back with the gradients.
function unpadded(x : T[N, L, K], lengths) {
  if lengths == none { return x }
  return select(broadcast(expand(steps_before(lengths, L), 2), [N, L, K]), x, 0)
}

# For layers over sequences and their masks: which of `size` steps each of the sequences has, [N, size].
function steps_before(lengths, size) {
  end = expect_range(integers(lengths), 0, size)
  return expand(end, 1) > (iota(i64[size]) if dtype(end) == i64 else iota(i32[size]))
}

# For layers over sequences: `next` in rows that have the step t, else `other`; without `lengths` all have it.
function within(t, lengths, next : T[N, K], other) {
  if lengths == none { return next }
  end = integers(lengths)
  at = cast(t, i64) if dtype(end) == i64 else t
  return select(broadcast(expand(at < end, 1), [N, K]), next, broadcast(other, [N, K]))
}

# A gated recurrent unit (Cho et al. 2014), its reset gate behind the product as in cuDNN: the candidate is
# tanh(x @ k + b + reset * (h @ r + recurrent_bias)), and h = update * h + (1 - update) * candidate; columns of `kernel`
# and `recurrent` are reset, update, candidate. Otherwise as rnn.
#   input x : f32[B, 5, 3]
#   predict y = nn.gru(x, 4)                          # f32[B, 4]
layer gru(x : T[N, L, K], units : int, sequence = false, reverse = false, lengths : U[N] = none,
          precision = none) with precision = precision {
  var kernel : T[K, 3 * units] = glorot_uniform()
  var recurrent : T[units, 3 * units] = glorot_uniform()
  var bias : T[3 * units] = zeros()
  var recurrent_bias : T[units] = zeros()
  h = broadcast(cast(0.0, T), [N, units])
  all_h = scan(reverse = reverse) h over x_t in unpadded(x, lengths), t in broadcast(iota(i32[L]), [N, L]) {
    next = gru_step(x_t @ kernel + bias, h @ recurrent, recurrent_bias, h)
    h = within(t, lengths, next, h)
    return within(t, lengths, next, cast(0.0, T))
  }
  return all_h if sequence else h
}

# For gru and gru_cell: what they do in a step, of x @ kernel + bias and h @ recurrent.
function gru_step(a : T[N, M], b, recurrent_bias, h : T[N, units]) {
  reset = sigmoid(a[:, 0:units] + b[:, 0:units])
  update = sigmoid(a[:, units:2 * units] + b[:, units:2 * units])
  candidate = tanh(a[:, 2 * units:] + reset * (b[:, 2 * units:] + recurrent_bias))
  return update * h + (1 - update) * candidate
}

# One step of gru: the state behind it. For loops that go on from what they give, as when text is written.
#   input x : f32[B, 5, 3]
#   h = broadcast(0.0, [B, 4])
#   cell = nn.gru_cell.new()
#   scan h over x_t in x { h = cell(x_t, h) }
#   predict y = h                                     # f32[B, 4]
layer gru_cell(x : T[N, K], h : T[N, units], precision = none) with precision = precision {
  var kernel : T[K, 3 * units] = glorot_uniform()
  var recurrent : T[units, 3 * units] = glorot_uniform()
  var bias : T[3 * units] = zeros()
  var recurrent_bias : T[units] = zeros()
  return gru_step(x @ kernel + bias, h @ recurrent, recurrent_bias, h)
}

# A long short-term memory (Hochreiter, Schmidhuber 1997), otherwise as rnn. Columns of `kernel` are the gates input and
# forget, to which 1 is added, the candidate and the gate output. Up to 32 steps are unrolled, which is faster by some
# percent; with more, with `lengths` or `reverse`, one step is compiled.
#   input x : f32[B, 5, 3]
#   predict y = nn.lstm(x, 4)                         # f32[B, 4]
layer lstm(x : T[N, L, K], units : int, sequence = false, reverse = false, lengths : U[N] = none,
           precision = none) with precision = precision {
  var kernel : T[K + units, 4 * units] = glorot_uniform()
  var bias : T[4 * units] = zeros()
  h = broadcast(cast(0.0, T), [N, units])
  c = h
  if 0 < L and L <= 32 and lengths == none and not reverse {
    all_h = []
    for t in 0..L {
      z = concat([x[:, t], h], axis = 1) @ kernel + bias
      c = sigmoid(z[:, units:2 * units] + 1) * c + sigmoid(z[:, 0:units]) * tanh(z[:, 2 * units:3 * units])
      h = sigmoid(z[:, 3 * units:]) * tanh(c)
      all_h = all_h + [h]
    }
    return stack(all_h, axis = 1) if sequence else h
  }
  ys = scan(reverse = reverse) h, c over x_t in unpadded(x, lengths), t in broadcast(iota(i32[L]), [N, L]) {
    z = concat([x_t, h], axis = 1) @ kernel + bias
    d = sigmoid(z[:, units:2 * units] + 1) * c + sigmoid(z[:, 0:units]) * tanh(z[:, 2 * units:3 * units])
    next = sigmoid(z[:, 3 * units:]) * tanh(d)
    c = within(t, lengths, d, c)
    h = within(t, lengths, next, h)
    return within(t, lengths, next, cast(0.0, T))
  }
  return ys if sequence else h
}

# One step of lstm: the list of h and c behind it.
#   input x : f32[B, 5, 3]
#   h = broadcast(0.0, [B, 4])
#   c = h
#   cell = nn.lstm_cell.new()
#   scan h, c over x_t in x { h, c = cell(x_t, h, c) }
#   predict y = h                                     # f32[B, 4]
layer lstm_cell(x : T[N, K], h : T[N, units], c, precision = none) with precision = precision {
  var kernel : T[K + units, 4 * units] = glorot_uniform()
  var bias : T[4 * units] = zeros()
  z = concat([x, h], axis = 1) @ kernel + bias
  next = sigmoid(z[:, units:2 * units] + 1) * c + sigmoid(z[:, 0:units]) * tanh(z[:, 2 * units:3 * units])
  return [sigmoid(z[:, 3 * units:]) * tanh(next), next]
}

# A layer over sequences, such as `rnn`, `gru` or `lstm`, from the first step on and from the last: what both give, one
# beside the other.
#   input x : f32[B, 5, 3]
#   predict y = nn.bidirectional(x, 4, cell = nn.gru) # f32[B, 8]
layer bidirectional(x, units : int, cell = lstm, sequence = false, lengths = none,
                    precision = none) with precision = precision {
  ahead = cell(x, units, sequence = sequence, lengths = lengths)
  back = cell(x, units, sequence = sequence, lengths = lengths, reverse = true)
  return concat([ahead, back], axis = 2 if sequence else 1)
}

# Layers over sequences one on the other, of so many units each; all but the last give all of their steps.
#   input x : f32[B, 5, 3]
#   predict y = nn.stacked(x, [8, 4], cell = nn.bidirectional)    # f32[B, 8]
layer stacked(x, units : list, cell = lstm, sequence = false, lengths = none,
              precision = none) with precision = precision {
  part = x
  for i in 0..size(units) {
    part = cell(part, units[i], sequence = sequence or i < size(units) - 1, lengths = lengths)
  }
  return part
}

# Self-attention with `heads` heads (Vaswani et al. 2017); `causal`: no position looks at later ones.
#   input x : f32[B, 5, 8]
#   predict y = nn.attention(x, heads = 2)            # f32[B, 5, 8]
layer attention(x : T[N, L, K], heads : int, causal = false, precision = none) with precision = precision {
  q = dense(x, K, use_bias = false)
  k = dense(x, K, use_bias = false)
  v = dense(x, K, use_bias = false)
  y = dot_product_attention(split_heads(q, heads), split_heads(k, heads), split_heads(v, heads), causal)
  return dense(reshape(y, [N, L, K]), K)
}

# For attention: [N, L, K] as [N, L, heads, K / heads].
function split_heads(x : T[N, L, K], heads) {
  return reshape(x, [N, L, heads, K / heads])
}

# One block of a transformer, normalised first (Xiong et al. 2020): x + attention, then that + a wide layer and back.
#   input x : f32[B, 5, 8]
#   predict y = nn.transformer_block(x, heads = 2, hidden = 16)   # f32[B, 5, 8]
layer transformer_block(x : T[N, L, K], heads : int, hidden : int, causal = false, rate = 0.0,
                        precision = none) with precision = precision {
  first = layer_norm(x)
  mixed = attention(first, heads, causal)
  a = x + dropout(mixed, rate)
  second = layer_norm(a)
  wide = dense(second, hidden, activation = gelu)
  narrow = dense(wide, K)
  return a + dropout(narrow, rate)
}

# SPDX-License-Identifier: Apache-2.0

# Attention and transformers: sequences are [N, length, features].

# Queries and keys turned by their places, so that products depend on distances alone (Su et al. 2021): features i and i + D/2 of
# [N, L, heads, D] by the angle place * base^(-2i/D). `first`, a number or [N, 1, 1, 1], is the
# place of the first.
#   input x : f32[B, 5, 2, 4]
#   predict y = nn.rotary(x)
function rotary(x : T[N, L, H, D], base = 10000.0, first = 0) {
  half = D / 2
  place = cast(iota(i32[L, 1, half], axis = 0) + first, T)
  angle = place * exp(cast(iota(i32[L, 1, half], axis = 2), T) * (-log(base) / half))
  a = x[..., 0:half]
  b = x[..., half:]
  return concat([a * cos(angle) - b * sin(angle), b * cos(angle) + a * sin(angle)], axis = 3)
}

# sin and cos of places, to be added to what stands there (Vaswani et al. 2017, section 3.5): [length, units], sin in the first half.
#   input x : f32[B, 5, 8]
#   predict y = x + nn.position_waves(5, 8)
function position_waves(length : int, units : int, base = 10000.0, to = f32) {
  half = units / 2
  angle = cast(iota(i32[length, half], axis = 0), to) * exp(cast(iota(i32[length, half], axis = 1), to) * (-log(base) / half))
  return concat([sin(angle), cos(angle)], axis = 1)
}

# A learned row for each place, added.
#   input x : f32[B, 5, 8]
#   predict y = nn.position_embedding(x)
layer position_embedding(x : T[N, L, K], initial = normal) {
  var table : T[L, K] = initial()
  return x + table
}

# Attention of x, [N, I, K], to `memory`, [N, J, M]; none: to itself (Vaswani et al. 2017). `kv_heads`: so many heads of keys and
# values, each shared by heads / kv_heads queries (Ainslie et al. 2023). `causal` and `mask`, bool [N, heads, I, J] of which each
# axis may be 1, are those of dot_product_attention. `rotate`: queries and keys are turned by their places.
# With a `cache`, [N, 2, J, kv_heads * K / heads] of keys and values, x is one step, [N, 1, K], at `place`, i32[N]: its key and value
# take the oldest one's place in the cache, `place % J`, it sees all that the cache has so far, and the list of the result and the
# cache is returned.
#   input x : f32[B, 5, 8]
#   input memory : f32[B, 3, 6]
#   h = nn.multi_head_attention(x, heads = 4, memory = memory, kv_heads = 2)
#   predict y = nn.multi_head_attention(h, heads = 4, causal = true, rotate = true)      # f32[B, 5, 8]
layer multi_head_attention(x : T[N, I, K], heads : int, memory = none, kv_heads = none, causal = false, mask = none,
                           rotate = false, use_bias = false, cache = none, place = none,
                           precision = none) with precision = precision {
  from = x if memory == none else memory
  groups = heads if kv_heads == none else kv_heads
  width = K / heads
  q = split_heads(dense(x, K, use_bias = use_bias), heads)
  k = split_heads(dense(from, width * groups, use_bias = use_bias), groups)
  v = split_heads(dense(from, width * groups, use_bias = use_bias), groups)
  if rotate {
    first = 0 if cache == none else reshape(place, [N, 1, 1, 1])
    q = rotary(q, first = first)
    k = rotary(k, first = first)
  }
  if cache != none {
    cache = remember(cache, reshape(k, [N, 1, width * groups]), reshape(v, [N, 1, width * groups]), place)
    k = split_heads(cache[:, 0], groups)
    v = split_heads(cache[:, 1], groups)
  }
  if groups != heads {
    k = repeat(k, heads / groups, axis = 2)
    v = repeat(v, heads / groups, axis = 2)
  }
  seen = mask if cache == none else length_mask(place + 1, shape(cache)[2])
  y = reshape(dot_product_attention(q, k, v, causal and cache == none, seen), [N, I, K])
  if cache != none { return [dense(y, K, use_bias = use_bias), cache] }
  return dense(y, K, use_bias = use_bias)
}

# For attention: a cache with the key and the value of one step, [N, 1, K], at its place.
function remember(cache : T[N, two, J, K], k, v, place) {
  here = reshape(expand(place % J) == iota(i32[J]), [N, 1, J, 1])
  return select(broadcast(here, [N, 2, J, K]), broadcast(stack([k, v], axis = 1), [N, 2, J, K]), cache)
}

# Which of `size` places are behind the `lengths` [N] of sequences, as a mask [N, 1, 1, size] for attention. Lengths of an input are from
# 0 to `size`, or its data is refused; of computed ones none below 0, all beyond `size`, as tf.sequence_mask has them.
#   input x : f32[B, 5, 8]
#   input lengths : i32[B]
#   predict y = nn.multi_head_attention(x, heads = 2, mask = nn.length_mask(lengths, 5))
function length_mask(lengths : integers, size : int) {
  return reshape(steps_before(lengths, size), [shape(lengths)[0], 1, 1, size])
}

# A wide layer and back: dense(activation(dense(x, hidden)), K).
#   input x : f32[B, 5, 8]
#   predict y = nn.feed_forward(x, 16)
layer feed_forward(x : T[..., K], hidden : int, activation = gelu, rate = 0.0, precision = none) with precision = precision {
  wide = dense(x, hidden, activation = activation)
  return dense(dropout(wide, rate), K)
}

# The same with a gate: dense(silu(dense(x, hidden)) * dense(x, hidden), K), without biases (Shazeer 2020).
#   input x : f32[B, 5, 8]
#   predict y = nn.gated_feed_forward(x, 16)
layer gated_feed_forward(x : T[..., K], hidden : int, activation = silu, precision = none) with precision = precision {
  gate = dense(x, hidden, activation = activation, use_bias = false)
  wide = dense(x, hidden, use_bias = false)
  return dense(gate * wide, K, use_bias = false)
}

# Blocks that look at the whole sequence, normalised first, and a layer_norm behind the last. With a `cache`, [N, blocks, 2, J, K], it
# makes one step at `place`, as multi_head_attention does, and returns the list of the result and the cache.
#   input x : f32[B, 5, 8]
#   predict y = nn.transformer_encoder(x, blocks = 2, heads = 2, hidden = 16)
layer transformer_encoder(x : T[N, L, K], blocks : int, heads : int, hidden : int, mask = none, causal = false, rotate = false,
                          rate = 0.0, cache = none, place = none, precision = none) with precision = precision {
  h = x
  kept = []
  for i in 0..blocks {
    first = layer_norm(h)
    if cache == none {
      mixed = multi_head_attention(first, heads, mask = mask, causal = causal, rotate = rotate)
    } else {
      mixed, part = multi_head_attention(first, heads, rotate = rotate, cache = cache[:, i], place = place)
      kept = kept + [part]
    }
    h = h + dropout(mixed, rate)
    second = layer_norm(h)
    wide = feed_forward(second, hidden)
    h = h + dropout(wide, rate)
  }
  if cache != none { return [layer_norm(h), stack(kept, axis = 1)] }
  return layer_norm(h)
}

# Blocks that look at what stands before, and at `memory`, normalised first, and a layer_norm behind the last.
#   input x : f32[B, 5, 8]
#   input memory : f32[B, 3, 6]
#   predict y = nn.transformer_decoder(x, memory, blocks = 2, heads = 2, hidden = 16)
layer transformer_decoder(x : T[N, L, K], memory, blocks : int, heads : int, hidden : int, mask = none, memory_mask = none,
                          rotate = false, rate = 0.0, precision = none) with precision = precision {
  h = x
  for i in 0..blocks {
    first = layer_norm(h)
    mixed = multi_head_attention(first, heads, causal = true, mask = mask, rotate = rotate)
    h = h + dropout(mixed, rate)
    second = layer_norm(h)
    seen = multi_head_attention(second, heads, memory = memory, mask = memory_mask)
    h = h + dropout(seen, rate)
    third = layer_norm(h)
    wide = feed_forward(third, hidden)
    h = h + dropout(wide, rate)
  }
  return layer_norm(h)
}

# SPDX-License-Identifier: Apache-2.0

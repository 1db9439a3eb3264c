# Numbers drawn in each step, always in scope: made of random_uniform and random_normal, which are built in. `type` is that of
# the result, as f32[B, 3].

# true with the probability p, which may be a tensor: bool of the shape of `type`.
#   input x : f32[B, 3]
#   predict y = select(random_bernoulli(type(x), 0.3), x, 0)
function random_bernoulli(type, p = 0.5) { return random_uniform(type) < p }

# -log(-log(U)) of an even U: the greatest of many (Gumbel 1935). A U of 0 stands for what lies between it and the next number that is
# drawn, and is half of that here: it would be infinite, and win whatever the logits are.
#   input x : f32[B, 3]
#   predict y = x + random_gumbel(type(x))
function random_gumbel(type) {
  return -log(max(-log1p(-random_uniform(type)), 5.551115123125783e-17 if dtype(type) == f64 else 2.9802322387695312e-8))
}

# -log(U) of an even U, of the mean 1.
#   input x : f32[B, 3]
#   predict y = x + random_exponential(type(x))
function random_exponential(type) { return -log1p(-random_uniform(type)) }

# Class numbers, i32, with probabilities softmax(logits / temperature) along the last axis, by the greatest of logits with Gumbel
# noise (Gumbel 1954; Maddison, Tarlow, Minka 2014). `k`: of the k most probable alone, and of what equals the last of them. At the
# temperature 0 nothing is drawn: the first of the greatest. `noise`, of random_gumbel, is given in a `scan`, which draws nothing.
#   input logits : f32[B, 3]
#   predict y = random_categorical(logits)        # i32[B]
#   predict z = random_categorical(logits, temperature = 0.5, k = 2)
function random_categorical(logits, temperature = 1.0, k = none, noise = none) {
  if temperature == 0 { return argmax(logits, axis = -1) }
  kept = logits
  if k != none {
    least = min(top_k(logits, k)[0], axis = -1, keep = true)
    kept = select(logits < least, -inf, logits)
  }
  warm = kept if temperature == 1 else kept / temperature
  return argmax(warm + (random_gumbel(type(logits)) if noise == none else noise), axis = -1)
}

# 0 .. n-1 in an order that is drawn, i32.
#   input x : f32[B]
#   metric m = mean(x) + sum(cast(random_permutation(4), f32))
function random_permutation(n : int) { return argsort(random_uniform(f64[n]), axis = 0) }

# The elements along an axis in an order that is drawn, the same for all that lies beside it.
#   input x : f32[B, 3]
#   predict y = shuffle(x)
function shuffle(x, axis = -1) {
  return take_along(x, places_along(x, random_permutation(shape(x)[axis]), axis), axis)
}

# Normal, but for what is further from the mean than two deviations: that is drawn anew.
#   input x : f32[B, 3]
#   predict y = x + random_truncated_normal(type(x))
function random_truncated_normal(type, mean = 0.0, stddev = 1.0) {
  reach = 0.9544997361036416
  return mean + stddev * 1.4142135623730951 * clip(erfinv(random_uniform(type, -reach, reach)), -1.41421356, 1.41421356)
}

# SPDX-License-Identifier: Apache-2.0

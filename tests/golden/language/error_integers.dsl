# Labels, ids and lengths are integers, and floats are refused: an error says how they are cast.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
model m {
  input x : f32[B, 3]
  input y : f32[B]
  input ids : f32[B, 3]
  var t : f32[4, 3] = ones()
  a = one_hot(y, 3)
  b = correct(x, y)
  c = in_top_k(x, y, 2)
  d = softmax_cross_entropy(x, y)
  f = softmax_cross_entropy(x, cast(x, f64))
  g = focal_loss(x, y)
  h = smooth_labels(y, 3)
  i = lookup(t, y)
  j = nn.embedding(y, 4, 3)
  k = nn.embedding_bag(ids, 4, 3)
  l = nn.embedding_lookup_sparse(t, ids)
  n = segment_sum(x, y, 3)
  p = segment_mean(x, y, 3)
  q = hash(y, 3)
  r = ctc_loss(broadcast(expand(x), [B, 3, 4]), ids)
  s = ctc_loss(broadcast(expand(x), [B, 3, 4]), cast(ids, i32), lengths = y)
  u = nn.length_mask(y, 3)
  v = nn.gru(broadcast(expand(x), [B, 3, 4]), 2, lengths = y)
  w = expect_range(y, 0, 2)  # of floats, too
  z = one_hot(1.5, 3)
  good = one_hot(cast(y, u8), 3)
  best = correct(x, y > 0)
}

# CHECK: error_integers.dsl:9:15: error: `x` of `one_hot` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:10:18: error: `label` of `correct` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:11:19: error: `label` of `in_top_k` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:12:7: error: `label` of `class_numbers` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:13:7: error: `label` of `cross_entropy_of_shares` must be T[..., classes], not f64[B,3]: T is f32 here
# CHECK: help: write `cast(label, f32)`
# CHECK: error_integers.dsl:14:7: error: `label` of `class_numbers` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:15:21: error: `label` of `smooth_labels` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:16:17: error: `ids` of `lookup` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:17:20: error: `ids` of `embedding` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:18:24: error: `ids` of `embedding_bag` must be integers, not f32[B,3]
# CHECK: help: write `cast(ids, i32)`
# CHECK: error_integers.dsl:19:37: error: `ids` of `embedding_lookup_sparse` must be integers, not f32[B,3]
# CHECK: help: write `cast(ids, i32)`
# CHECK: error_integers.dsl:20:22: error: `ids` of `segment_sum` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:21:23: error: `ids` of `segment_mean` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:22:12: error: `ids` of `hash` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:23:49: error: `label` of `ctc_loss` must be integers, not f32[B,3]
# CHECK: help: write `cast(ids, i32)`
# CHECK: error_integers.dsl:24:75: error: `lengths` of `ctc_loss` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:25:22: error: `lengths` of `length_mask` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:26:7: error: `x` of `integers` must be integers, not f32[B]
# CHECK: help: write `cast(y, i32)`
# CHECK: error_integers.dsl:28:15: error: `x` of `one_hot` must be integers, not the number 1.5
# CHECK: help: write `cast(x, i32)`

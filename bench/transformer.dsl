# A transformer over the characters of a text: `length` of them at a time, each told from those before it. `plain` holds
# all scores, as attention does that is written out; else they are held block by block.
use nn

layer written_out(x : T[N, L, K], heads : int) {
  q = heads_of(nn.dense(x, K, use_bias = false), heads)
  k = heads_of(nn.dense(x, K, use_bias = false), heads)
  v = heads_of(nn.dense(x, K, use_bias = false), heads)
  score = q @ transpose(k) * (1.0 / sqrt(K / heads))
  seen  = select(iota(i32[L, L], axis = 0) >= iota(i32[L, L], axis = 1), score, -1e9)
  y     = transpose(softmax(seen) @ v, [0, 2, 1, 3])
  return nn.dense(reshape(y, [N, L, K]), K)
}

function heads_of(x : T[N, L, K], heads) {
  return transpose(reshape(x, [N, L, heads, K / heads]), [0, 2, 1, 3])
}

layer block(x : T[N, L, K], heads : int, plain) {
  first = nn.layer_norm(x)
  mixed = written_out(first, heads) if plain else nn.attention(first, heads, causal = true)
  a     = x + mixed
  wide  = nn.dense(nn.layer_norm(a), 4 * K, activation = gelu)
  return a + nn.dense(wide, K)
}

model transformer(length = 64, width = 128, heads = 8, blocks = 4, plain = false, rate = 1e-3) {
  input text : u8[B, length + 1]

  now   = cast(text[:, 0:length], i32)
  next  = cast(text[:, 1:length + 1], i32)
  x     = nn.embedding(now, 256, width)
  for i in 0..blocks { x = block(x, heads, plain) }
  logits = nn.dense(nn.layer_norm(x), 256)
  loss   = softmax_cross_entropy(logits, next)

  train   mean(loss) with adam(rate = rate)
  predict probability = softmax(logits)
}

# A transformer that predicts the next of 64 characters: 4 blocks of 128 features, 4 heads.
use nn

model chars(length = 64, width = 128, blocks = 4, precision = "f32", rate = 1e-3) with precision = precision {
  input text : i32[B, length]
  input next : i32[B, length]

  var place : f32[length, width] = uniform()
  x = nn.embedding(text, 96, width) + place
  for i in 0..blocks { x = nn.transformer_block(x, heads = 4, hidden = 4 * width, causal = true) }
  logits = nn.dense(nn.layer_norm(x), 96)
  loss   = softmax_cross_entropy(reshape(logits, [B * length, 96]), reshape(next, [B * length]))

  train mean(loss) with adam(rate = rate)
}

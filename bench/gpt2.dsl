# GPT-2 small: 12 blocks of 768 features, 12 heads, 50257 words, whose table is also that of the logits.
use nn

model gpt2(length = 256, words = 50257, width = 768, precision = "f32", rate = 6e-4) with precision = precision {
  input text : i32[B, length]
  input next : i32[B, length]

  var table : f32[words, width] = normal(stddev = 0.02)
  var place : f32[length, width] = normal(stddev = 0.02)
  x = gather(table, text) + place
  for i in 0..12 { x = nn.transformer_block(x, heads = 12, hidden = 4 * width, causal = true) }
  logits = matmul(reshape(nn.layer_norm(x), [B * length, width]), transpose(table))

  train mean(softmax_cross_entropy(logits, reshape(next, [B * length]))) with adamw(rate = rate, decay = 0.1)
}

# A layer computes in the element type that it is given.
# RUN: %dgc compile %s --entry predict --emit graph 2>&1 | %FileCheck %s --implicit-check-not=f32
use nn
model wide() {
  input image : f64[B, 4, 4, 2]
  input words : f64[B, 3, 4]
  c = nn.conv2d(image, 2)
  p = nn.mean_pool2d(nn.max_pool2d(c))
  d = nn.mlp(nn.layer_norm(nn.dense(words, 4)), [4, 4])
  l = nn.lstm(nn.batch_norm(d), 3)
  s = nn.lstm(words, 3, sequence = true)
  t = nn.transformer_block(nn.attention(words, 2, causal = true), 2, 5)
  # CHECK: predict all
  predict all = concat([flatten(p), l, flatten(s), flatten(t)], axis = 1)
}

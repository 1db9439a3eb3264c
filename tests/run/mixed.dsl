# SPDX-License-Identifier: Apache-2.0
# For portable.sh: convolutions of every kind, attention, and products of bfloat16.
use nn

model mixed {
  input image : u8[B, 28, 28]
  input label : u8[B]

  x      = reshape(cast(image, f32) / 255, [B, 28, 28, 1])
  c1     = nn.conv2d(x, 20, size = 3, stride = 2, activation = relu)
  c2     = nn.depthwise(c1, stride = 2, activation = relu)
  c3     = nn.conv2d(c2, 24, size = 3, groups = 2, dilation = 2, activation = relu)
  c4     = nn.conv2d(c3, 70, size = 1)
  rows   = nn.attention(reshape(c4, [B, 49, 70]), heads = 2, causal = true)
  h      = nn.dense(mean(rows, axis = 1), 64, relu, precision = bf16)
  logits = nn.dense(h, 10)
  loss   = softmax_cross_entropy(logits, label)

  train   mean(loss) with adam(rate = 1e-3)
  metric  accuracy = mean(correct(logits, label))
}

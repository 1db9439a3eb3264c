# A mixture of experts: each of seven strips of a picture goes to two of eight perceptrons, of which none takes more than three of
# one picture. A small part of the loss sees to it that all have something to do.
use nn

model experts(count = 8, hidden = 64, width = 48, rate = 1e-3) {
  input image : u8[B, 28, 28]
  input label : u8[B]

  strips = reshape(cast(image, f32) / 255, [B, 7, 112])
  tokens = nn.position_embedding(nn.dense(strips, width))
  mixed  = nn.mixture_of_experts(nn.layer_norm(tokens), experts = count, hidden = hidden, k = 2, capacity = 3)
  h      = tokens + mixed[0]
  logits = nn.dense(flatten(nn.layer_norm(h)), 10)
  loss   = softmax_cross_entropy(logits, label)

  train   mean(loss) + 0.01 * mixed[1] with [clip_by_global_norm(1.0), adam(rate = rate)]
  metric  accuracy    = mean(correct(logits, label))
  predict probability = softmax(logits)

  data train {
    image = "data/train-images.idx"
    label = "data/train-labels.idx"
  }
  data test {
    image = "data/test-images.idx"
    label = "data/test-labels.idx"
  }
}

# SPDX-License-Identifier: Apache-2.0

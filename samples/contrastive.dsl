# Two towers of one encoder: two noisy views of a digit are to be closer to each other than to the views of all other digits of
# the batch. No label is used for that; a linear layer on the codes then shows what they know.
use nn

layer encoder(x, code : int) { return nn.dense(nn.dense(x, 256, relu), code) }

model contrastive(code = 32, sharpness = 5.0, rate = 1e-3) {
  input image : u8[B, 28, 28]
  input label : u8[B]

  x      = flatten(cast(image, f32) / 255)
  encode = encoder.new(code)                 # one layer, called three times: the same weights
  left   = l2_normalize(encode(dropout(x, 0.3)))
  right  = l2_normalize(encode(dropout(x, 0.3)))
  alike  = sharpness * left @ transpose(right)                    # f32[B, N]: all pairs of the batch, whatever the towers
  loss   = logsumexp(alike, axis = 1) - sharpness * sum(left * right, axis = 1)

  known  = stop_gradient(encode(x))
  logits = nn.dense(known, 10)
  probe  = softmax_cross_entropy(logits, label)

  train   mean(loss) with adam(rate = rate) over encode
  train   mean(probe) with adam(rate = 10 * rate)
  metric  accuracy = mean(correct(logits, label))
  predict code_of  = l2_normalize(known)

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

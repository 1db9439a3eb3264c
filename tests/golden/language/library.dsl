# Every layer, loss and optimizer of the library compiles.
# RUN: %dgc check %s 2>&1 | %FileCheck %s --implicit-check-not=error
use nn
# CHECK: ok
model library(method = adam, classes = 5) {
  input image : f32[B, 12, 12, 1]
  input text : i32[B, 6]
  input label : i64[B]
  c  = nn.conv2d(image, 4, size = 3, stride = 2, activation = leaky_relu)
  c2 = nn.conv2d(nn.max_pool2d(c), 4, padding = "valid", initial = he_normal)
  c3 = nn.depthwise(nn.conv_transpose(c2, 4, stride = 2), multiplier = 2, dilation = 2, use_bias = false)
  c4 = nn.conv3d(reshape(nn.conv2d(c3, 8, groups = 4), [B, 2, 2, 2, 4]), 2, size = 2)
  c5 = nn.conv1d(reshape(c4, [B, 8, 2]), 3, stride = 2, padding = [[0, 1]])
  e  = nn.embedding(text, 50, 8)
  t  = nn.transformer_block(e, heads = 2, hidden = 16, causal = true, rate = 0.1)
  l  = nn.lstm(t, 8)
  h  = nn.batch_norm(concat([flatten(c2), flatten(c5), l], axis = 1))
  for act in [relu, relu6, elu, selu, gelu, silu, mish, softsign, hard_sigmoid, sigmoid, tanh] { h = nn.dense(h, 4, act) }
  g = h
  for initial in [zeros, ones, glorot_uniform, glorot_normal, he_uniform, he_normal, lecun_uniform, lecun_normal, uniform, normal] {
    g = nn.dense(g, 4, initial = initial)
  }
  logits = nn.dense(g, classes)
  loss = softmax_cross_entropy(logits, label)
  soft = softmax_cross_entropy(logits, one_hot(label, classes))
  other = huber(logsumexp(logits), 1) + sum(log_softmax(logits), axis = -1) + stddev(logits, axis = 1) + norm(l2_normalize(logits), axis = 1)
  if method == adam {
    train mean(loss) with adam(rate = warmup(cosine_decay(0.1, 100), 10))
    train soft_loss = mean(soft) with rmsprop(rate = exponential_decay(0.1, 10, 0.5, staircase = true))
    train third = mean(other) with adagrad(rate = linear_decay(0.1, 10)) over ["logits"]
    train fourth = mean(other) with adamw(rate = piecewise([1, 2], [0.3, 0.2, 0.1])) over ["logits.kernel", "h"]
    train fifth = mean(other) with momentum(nesterov = true)
  } else {
    train mean(loss) with method(rate = 0.1)
  }
  metric accuracy = mean(correct(logits, label))
  predict probability = softmax(logits)
}

# What error_elsewhere_losses.dsl is told to write.
use nn
model weighed() {
  input x : f32[B, 6, 6]
  input m : bool[B, 6]
  input lengths : i32[B]
  input label : i32[B]
  input t : f32[B]
  logits = nn.dense(x[:, 0], 3)
  loss = softmax_cross_entropy(logits, label)
  train a = mean(softmax_cross_entropy(logits, smooth_labels(label, 3, 0.1))) with sgd(0.1)
  metric b = weighted_mean(loss, gather(cast([1.0, 2.0, 3.0], f32), label))
  metric c = weighted_mean(softmax_cross_entropy(logits, max(label, 0)), cast(label >= 0, f32))
  metric d = mean(sigmoid_cross_entropy(logits[:, 0], t) * (1 + (3.0 - 1) * t))
  p = cast(logits[:, 0] > 0, f32)
  metric precision = ratio(sum(p * t), sum(p))
  metric f1 = ratio(2 * sum(p * t), sum(p) + sum(t))
  h = nn.multi_head_attention(x, heads = 3, mask = nn.length_mask(lengths, 6))
  predict y = nn.multi_head_attention(h, heads = 3, mask = expand(expand(m, 1), 1))
}

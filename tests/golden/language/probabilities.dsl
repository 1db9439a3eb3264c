# Probabilities that are given where logits are wanted, and the reverse: by name, by an activation, of the library's functions alone.
# RUN: %dgc check %s 2>&1 | %FileCheck %s
use nn
function mine(logits) { return sum(logits) }
model probabilities() {
  input x : f32[B, 4]
  input label : u8[B]
  input t : f32[B, 3]
  logits = nn.dense(x, units = 3)
  p = softmax(logits)
  q = nn.dense(x, units = 3, activation = sigmoid)
  train mean(softmax_cross_entropy(p, label)) with adam(0.1)
  metric a = mean(sigmoid_cross_entropy(q, t))
  metric b = mean(softmax_cross_entropy(label = t, logits = sigmoid(logits)))
  metric c = mean(sigmoid_focal_loss(p, t))
  metric d = mean(softmax_cross_entropy(log_softmax(logits), label))
  metric e = mean(softmax_cross_entropy(p / 2, label))
  metric f = mean(sigmoid_cross_entropy(logits, p))
  metric g = mine(p)
  predict h = random_categorical(p)
  hit = cast(label, f32) == 0
  metric i = auc(p[:, 0], hit)
  metric j = auc(q[:, 0], hit)
  logit = squeeze(nn.dense(x, 1), 1)
  metric k = auc(logit, hit)
  metric l = auc_pr(scores = logits[:, 2], label = hit)
  metric m = auc(squeeze(nn.dense(x, 1, use_bias = false), -1), hit)
  metric n = auc(sigmoid(logit), hit)
  metric o = auc(x[:, 0], hit)
}
# CHECK-NOT: warning:
# CHECK: :12:36: warning: probabilities are given where logits are wanted: this has been through `softmax`
# CHECK: help: `softmax_cross_entropy` takes values that no `softmax` has been taken of
# CHECK-NOT: warning:
# CHECK: :13:41: warning: {{.*}}`sigmoid`
# CHECK-NOT: warning:
# CHECK: :14:61: warning: {{.*}}`sigmoid`
# CHECK-NOT: warning:
# CHECK: :15:38: warning: {{.*}}`softmax`
# CHECK-NOT: warning:
# CHECK: :25:18: warning: logits are given where scores from 0 to 1 are wanted: `auc` is NaN where one lies outside
# CHECK: help: write `sigmoid(logit)`
# CHECK-NOT: warning:
# CHECK: :26:30: warning: {{.*}}`auc_pr` is NaN
# CHECK-NOT: warning:
# CHECK: :27:18: warning: {{.*}}`auc` is NaN
# CHECK: help: write `sigmoid(logits)`
# CHECK-NOT: warning:
# CHECK: :20:34: warning: {{.*}}`softmax`
# CHECK-NOT: warning:

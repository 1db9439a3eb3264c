# What libraries elsewhere make of weights of classes and rows, by their own numbers: Keras' fit(class_weight = {0: 1, 1: 2, 2: 5}) and
# fit(sample_weight) of these rows, torch's cross_entropy(weight) and binary_cross_entropy_with_logits(weight).
# RUN: %dgc eval %s --backend interp | %FileCheck %s
model weighed() {
  input x : f32[B, 3]
  input label : i32[B]
  input t : f32[B]
  loss = softmax_cross_entropy(x, label)
  weights = gather(cast([1.0, 2.0, 5.0], f32), label)
  metric keras = sum_over_batch_size(loss, weights)
  metric torch = weighted_mean(loss, weights)
  metric binary = sum_over_batch_size(sigmoid_cross_entropy(x[:, 0], t), weights)
  data test { x = "inputs/weighed.csv:1-3"; label = "inputs/weighed.csv:label"; t = "inputs/weighed.csv:t" }
}
# CHECK: keras 2.29373
# CHECK: torch 0.91749
# CHECK: binary 3.3799

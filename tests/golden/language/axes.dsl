# What reduces axes takes one, a list of them, or none for all; so does what works along axes.
# RUN: %dgc check %s 2>&1 | %FileCheck %s --implicit-check-not=error
# CHECK: ok
model axes() {
  input x : f32[B, 2, 3]
  sums = []
  for f in [sum, mean, prod, max, min, logsumexp, variance, stddev, norm] {
    # Each sum is of B numbers, whatever the axes are called.
    one = f(x, axis = 1)[:, 0] + f(x, axis = [1])[:, 0] + f(x, axis = [-2])[:, 0] + f(x[:, 0], axis = [-1])
    both = f(x, axis = [1, 2]) + f(x, axis = [-1, 1]) + f(f(x, axis = [2]), axis = [1])
    kept = f(x, axis = [1], keep = true)[:, 0, 0] + f(x, axis = [1, 2], keep = true)[:, 0, 0]
    sums = sums + [one + both + kept]
  }
  for f in [softmax, log_softmax, l2_normalize] {
    sums = sums + [f(x, axis = 1)[:, 1, 2] + f(x, axis = [1, 2])[:, 1, 2]]
  }
  predict sums = stack(sums, axis = 1)

  state scale : f32[2, 3] = 1
  level = mean(x[:, 0, 0])
  for f in [sum, prod, stddev, norm] { level = level + f(scale, axis = none) }
  metric level = level
}

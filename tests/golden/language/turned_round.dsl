# A rate where the steps of a schedule stand: told once for each place, and of the library's functions alone.
# RUN: %dgc check %s 2>&1 | %FileCheck %s
function mine(rate, steps) { return rate + 0 * steps }
model m(rate = 0.1, part = 0.5) {
  input x : f32[B, 3]
  var w : f32[3] = ones()
  loss = mean(square(sum(x * w, axis = 1)))
  train a = loss with sgd(one_cycle(1000, rate))
  train b = loss with sgd(warmup(cosine_decay(rate, 1000), 1e-3))
  train c = loss with sgd(cosine_decay(steps = part, rate = 100))
  train d = loss with sgd(linear_decay(rate, 1))
  train e = loss with sgd(warmup(rate, 0))
  train f = loss with sgd(mine(rate, part))
}
# CHECK-NOT: warning:
# CHECK: :8:43: warning: `steps` of `one_cycle` is 0.1, less than one step
# CHECK: help: the rate stands first: `one_cycle(rate, steps)`
# CHECK-NOT: warning:
# CHECK: :9:60: warning: `steps` of `warmup` is 0.001, less than one step
# CHECK-NOT: warning:
# CHECK: :10:48: warning: `steps` of `cosine_decay` is 0.5, less than one step
# CHECK-NOT: warning:

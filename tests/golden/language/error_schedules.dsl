# Schedules of no steps or of fewer, and of parts that do not follow each other.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model m {
  input x : f32[B, 3]
  var w : f32[3] = ones()
  loss = mean(square(sum(x * w, axis = 1)))
  train a = loss with sgd(cosine_decay(0.1, 0))
  train b = loss with sgd(linear_decay(0.1, 0))
  train c = loss with sgd(polynomial_decay(0.1, -5, power = 2))
  train d = loss with sgd(exponential_decay(0.1, 0, 0.9))
  train e = loss with sgd(cosine_restarts(0.1, 0))
  train f = loss with sgd(cosine_restarts(0.1, 10, longer = 0))
  train g = loss with sgd(one_cycle(0.1, 0))
  train h = loss with sgd(warmup(0.1, -3))
  train i = loss with sgd(piecewise([20, 10], [0.1, 0.03, 0.01]))
  train j = loss with sgd(piecewise([10, 10], [0.1, 0.03, 0.01]))
  train k = loss with sgd(piecewise(10, [0.1, 0.03]))
  train l = loss with sgd(piecewise([10, 20], [0.1, 0.03, 0.01, 0.003]))
  train o = loss with sgd(piecewise([10, 20], [0.1, 0.03]))
  train q = loss with sgd(piecewise([10, 20], 0.1))
  train good = loss with sgd(warmup(piecewise([10, 20], [0.1, 0.03, 0.01]), 0))
}
# CHECK: error_schedules.dsl:7:45: error: `steps` of `cosine_decay` must be positive, not the number 0: it is greater than 0
# CHECK: error_schedules.dsl:8:45: error: `steps` of `linear_decay` must be positive, not the number 0: it is greater than 0
# CHECK: error_schedules.dsl:9:49: error: `steps` of `polynomial_decay` must be positive, not the number -5: it is greater than 0
# CHECK: error_schedules.dsl:10:50: error: `steps` of `exponential_decay` must be positive, not the number 0: it is greater than 0
# CHECK: error_schedules.dsl:11:48: error: `steps` of `cosine_restarts` must be positive, not the number 0: it is greater than 0
# CHECK: error_schedules.dsl:12:61: error: `longer` of `cosine_restarts` must be positive, not the number 0: it is greater than 0
# CHECK: error_schedules.dsl:13:42: error: `steps` of `one_cycle` must be positive, not the number 0: it is greater than 0
# CHECK: error_schedules.dsl:14:39: error: `steps` of `warmup` must be nonnegative, not the number -3: it is at least 0
# CHECK: error_schedules.dsl:15:37: error: `boundaries` of `piecewise` must be ascending, not the list [20, 10]: it is a list of numbers, each greater than the one before
# CHECK: error_schedules.dsl:16:37: error: `boundaries` of `piecewise` must be ascending, not the list [10, 10]: it is a list of numbers, each greater than the one before
# CHECK: error_schedules.dsl:17:37: error: `boundaries` of `piecewise` must be ascending, not the number 10: it is a list of numbers, each greater than the one before
# CHECK: error_schedules.dsl:18:47: error: `values` of `piecewise` must be list[size(boundaries) + 1], not the list [0.1, 0.03, 0.01, 0.003]: size(boundaries) + 1 is 3 here
# CHECK: error_schedules.dsl:19:47: error: `values` of `piecewise` must be list[size(boundaries) + 1], not the list [0.1, 0.03]: size(boundaries) + 1 is 3 here
# CHECK: error_schedules.dsl:20:47: error: `values` of `piecewise` must be list[size(boundaries) + 1], not the number 0.1
# CHECK-NOT: :21:

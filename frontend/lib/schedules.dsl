# Learning rates that change with `step`, the number of steps done: scalars of f64, which optimizers round to what they
# need.

# rate * decay ^ (step / steps); `staircase`: the exponent is rounded down.
#   input x : f32[B, 3]
#   var w : f32[3] = ones()
#   train mean(square(sum(x * w, axis = 1))) with sgd(exponential_decay(0.1, 1000, 0.9))
function exponential_decay(rate, steps : positive, decay, staircase = false) {
  t = cast(step, f64) / steps
  return rate * decay ^ (floor(t) if staircase else t)
}

# rate * ((1 - alpha) * (1 + cos(pi * t)) / 2 + alpha), t = step / steps, 1 at most (Loshchilov, Hutter 2017).
#   input x : f32[B, 3]
#   var w : f32[3] = ones()
#   train mean(square(sum(x * w, axis = 1))) with sgd(cosine_decay(0.1, 1000))
function cosine_decay(rate, steps : positive, alpha = 0.0) {
  t = min(cast(step, f64) / steps, 1)
  return rate * ((1.0 - alpha) * 0.5 * (1 + cos(pi * t)) + alpha)
}

# From `rate` to `to` in a straight line of `steps` steps, then `to`.
#   input x : f32[B, 3]
#   var w : f32[3] = ones()
#   train mean(square(sum(x * w, axis = 1))) with sgd(linear_decay(0.1, 1000))
function linear_decay(rate, steps : positive, to = 0.0) {
  t = min(cast(step, f64) / steps, 1)
  return rate + (to - rate) * t
}

# values[i] until step boundaries[i]; the last value from then on, in step boundaries[i] itself already (Keras': from the next).
#   input x : f32[B, 3]
#   var w : f32[3] = ones()
#   train mean(square(sum(x * w, axis = 1))) with sgd(piecewise([100, 200], [0.1, 0.03, 0.01]))
function piecewise(boundaries : ascending, values : list[size(boundaries) + 1]) {
  rate = cast(values[0], f64)
  for i in 0..size(boundaries) { rate = select(step >= boundaries[i], cast(values[i + 1], f64), rate) }
  return rate
}

# Grows from rate/steps to `rate` in `steps` steps; `rate` may itself be a schedule.
#   input x : f32[B, 3]
#   var w : f32[3] = ones()
#   train mean(square(sum(x * w, axis = 1))) with sgd(warmup(cosine_decay(0.1, 1000), 10))
function warmup(rate, steps : nonnegative) { return cast(rate, f64) * min((cast(step, f64) + 1) / steps, 1) }

# From `rate` to `to` as (1 - t)^power, t = step / steps, 1 at most.
#   input x : f32[B, 3]
#   var w : f32[3] = ones()
#   train mean(square(sum(x * w, axis = 1))) with sgd(polynomial_decay(0.1, 1000, power = 2))
function polynomial_decay(rate, steps : positive, to = 0.0, power = 1.0) {
  t = min(cast(step, f64) / steps, 1)
  return (rate - to) * (1 - t) ^ power + to
}

# cosine_decay, which begins again after `steps` steps, the next time after `longer` times as many, at `lower` times the rate,
# `restarts` times in all; then it stays where the last one ends (Loshchilov, Hutter 2017).
#   input x : f32[B, 3]
#   var w : f32[3] = ones()
#   train mean(square(sum(x * w, axis = 1))) with sgd(cosine_restarts(0.1, 100, longer = 2))
function cosine_restarts(rate, steps : positive, longer : positive = 1, lower = 1.0, alpha = 0.0, restarts : int = 20) {
  begin = 0
  length = steps
  height = 1.0
  now = cast(step, f64)
  y = cast(0.0, f64) * now
  for i in 0..restarts + 1 {
    t = min((now - begin) / length, 1)
    y = select(now >= begin, (1.0 - alpha) * 0.5 * height * (1 + cos(pi * t)) + alpha, y)
    begin = begin + length
    length = length * longer
    height = height * lower
  }
  return rate * y
}

# Up from rate * begin to `rate` in the first `rise` of the steps, then down to rate * end, each half a wave of a cosine (Smith,
# Topin 2018).
#   input x : f32[B, 3]
#   var w : f32[3] = ones()
#   train mean(square(sum(x * w, axis = 1))) with sgd(one_cycle(0.1, 1000))
function one_cycle(rate, steps : positive, rise = 0.3, begin = 0.04, end = 4e-6) {
  top = rise * steps - 1.0
  t = min(cast(step, f64), steps - 1)
  up = 0.5 * (1 - cos(pi * min(t / max(top, 1e-9), 1))) # in a rise of one step t is 0, and so is `top`
  down = 0.5 * (1 + cos(pi * max(t - top, 0) / (steps - 1 - top)))
  return rate * select(t <= top, begin + (1 - begin) * up, end + (1 - end) * down)
}

# SPDX-License-Identifier: Apache-2.0

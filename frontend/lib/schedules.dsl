# Learning rates that change with `step`, the number of steps done: scalars of f64, which optimizers round to what they
# need.

function exponential_decay(rate, steps, decay, staircase = false) {
  t = cast(step, f64) / steps
  return rate * decay ^ (floor(t) if staircase else t)
}

function cosine_decay(rate, steps, alpha = 0.0) {
  t = min(cast(step, f64) / steps, 1)
  return rate * ((1.0 - alpha) * 0.5 * (1 + cos(pi * t)) + alpha)
}

function linear_decay(rate, steps, to = 0.0) {
  t = min(cast(step, f64) / steps, 1)
  return rate + (to - rate) * t
}

# values[i] until step boundaries[i]; the last value from then on.
function piecewise(boundaries : list, values : list) {
  rate = cast(values[0], f64)
  for i in 0..size(boundaries) { rate = select(step >= boundaries[i], cast(values[i + 1], f64), rate) }
  return rate
}

# Grows from rate/steps to `rate` in `steps` steps; `rate` may itself be a schedule.
function warmup(rate, steps) { return cast(rate, f64) * min((cast(step, f64) + 1) / steps, 1) }

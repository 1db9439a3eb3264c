# How a step changes a variable. An optimizer runs once for each trained `variable`, sees its `gradient`, and may keep
# state of its own for it. `rate` is a number or a schedule.

# variable - rate * gradient.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with sgd(0.1)
optimizer sgd(rate = 0.01) { variable <- variable - cast(rate, dtype(variable)) * gradient }

# v = mu * v + gradient; variable - rate * v, with `nesterov` variable - rate * (gradient + mu * v) (Polyak 1964; Nesterov
# 1983, as Sutskever et al. 2013 write it). A rate that changes is that of the step, as torch's; Keras' velocity has the rates of the
# steps before in it, which is `[scale(cast(rate, f32)), momentum(1.0)]`, with the schedule as rate. With storage = bf16 or f16 v is kept in 16 bits.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with momentum(0.1, nesterov = true)
optimizer momentum(rate = 0.01, mu = 0.9, nesterov = false, storage = none) {
  var velocity : type(variable) = zeros() storage(storage)
  next = mu * velocity + gradient
  velocity <- next
  variable <- variable - cast(rate, dtype(variable)) * (gradient + mu * next if nesterov else next)
}

# s = s + gradient^2; variable - rate * gradient / (sqrt(s) + epsilon) (Duchi, Hazan, Singer 2011).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with adagrad(0.1)
optimizer adagrad(rate = 0.01, initial = 0.1, epsilon = 1e-7) {
  var total : type(variable) = constant(initial)
  next = total + square(gradient)
  total <- next
  variable <- variable - cast(rate, dtype(variable)) * gradient / (sqrt(next) + epsilon)
}

# v = decay * v + (1 - decay) * gradient^2; variable - rate * gradient / (sqrt(v) + epsilon) (Tieleman, Hinton 2012).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with rmsprop()
optimizer rmsprop(rate = 0.001, decay = 0.9, epsilon = 1e-7) {
  var v : type(variable) = zeros()
  next = decay * v + (1 - decay) * square(gradient)
  v <- next
  variable <- variable - cast(rate, dtype(variable)) * gradient / (sqrt(next) + epsilon)
}

# For adam: the rate of step t, corrected for moments that begin at zero. In f64: the first steps are all in what beta2 ^ t
# lacks to 1.
function adam_rate(rate, beta1, beta2, to) {
  t = cast(step + 1, f64)
  return cast(cast(rate, f64) * sqrt(1 - beta2 ^ t) / (1 - beta1 ^ t), to)
}

# m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2; in step t, from 1, variable - r * m / (sqrt(v) +
# epsilon) with r = rate * sqrt(1 - beta2^t) / (1 - beta1^t) (Kingma, Ba 2015, the form before section 2.1's end, which is
# TensorFlow's). With storage = bf16 or f16 m is kept in 16 bits; v, whose steps of 1 - beta2 they would lose, is not.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with adam(0.01)
optimizer adam(rate = 0.001, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7, storage = none) {
  var m : type(variable) = zeros() storage(storage)
  var v : type(variable) = zeros()
  next_m = beta1 * m + (1 - beta1) * gradient
  next_v = beta2 * v + (1 - beta2) * square(gradient)
  m <- next_m
  v <- next_v
  rate_t = adam_rate(rate, beta1, beta2, dtype(variable))
  variable <- variable - rate_t * next_m / (sqrt(next_v) + epsilon)
}

# Adam with weights that decay on their own, by rate * decay * variable, not through the gradient (Loshchilov, Hutter 2019).
# `storage` is adam's.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with adamw(0.01, decay = 0.1)
optimizer adamw(rate = 0.001, decay = 0.01, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7, storage = none) {
  var m : type(variable) = zeros() storage(storage)
  var v : type(variable) = zeros()
  next_m = beta1 * m + (1 - beta1) * gradient
  next_v = beta2 * v + (1 - beta2) * square(gradient)
  m <- next_m
  v <- next_v
  rate_t = adam_rate(rate, beta1, beta2, dtype(variable))
  variable <- variable - rate_t * next_m / (sqrt(next_v) + epsilon) - cast(rate, dtype(variable)) * decay * variable
}

# Momentum with weights that decay on their own: v = mu * v + gradient; variable - rate * (v + decay * variable) (Loshchilov,
# Hutter 2019, algorithm 1).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with sgdw(0.1, decay = 0.01)
optimizer sgdw(rate = 0.01, decay = 0.01, mu = 0.9, nesterov = false) {
  var velocity : type(variable) = zeros()
  next = mu * velocity + gradient
  velocity <- next
  way = gradient + mu * next if nesterov else next
  variable <- variable - cast(rate, dtype(variable)) * (way + decay * variable)
}

# s = decay * s + (1 - decay) * gradient^2; d = gradient * sqrt(u + epsilon) / sqrt(s + epsilon); u = decay * u + (1 - decay) *
# d^2; variable - rate * d (Zeiler 2012).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with adadelta()
optimizer adadelta(rate = 1.0, decay = 0.9, epsilon = 1e-6) {
  var squares : type(variable) = zeros()
  var changes : type(variable) = zeros()
  next = decay * squares + (1 - decay) * square(gradient)
  way = gradient * (sqrt(changes + epsilon) / sqrt(next + epsilon))
  squares <- next
  changes <- decay * changes + (1 - decay) * square(way)
  variable <- variable - cast(rate, dtype(variable)) * way
}

# m = beta1 * m + (1 - beta1) * g; u = max(beta2 * u, |g| + epsilon); variable - rate / (1 - beta1^t) * m / u (Kingma, Ba 2015,
# section 7.1).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with adamax()
optimizer adamax(rate = 0.002, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8) {
  var m : type(variable) = zeros()
  var u : type(variable) = zeros()
  next_m = beta1 * m + (1 - beta1) * gradient
  next_u = max(beta2 * u, abs(gradient) + epsilon)
  m <- next_m
  u <- next_u
  t = cast(step + 1, f64)
  variable <- variable - cast(cast(rate, f64) / (1 - beta1 ^ t), dtype(variable)) * next_m / next_u
}

# For nadam: the share of momentum in step t.
function nadam_share(beta1, t, growth) { return beta1 * (1 - 0.5 * cast(0.96, f64) ^ (growth * t)) }

# Adam that looks ahead, with momentum that grows: mu_t = beta1 * (1 - 0.96^(growth * t) / 2) (Dozat 2016).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with nadam()
optimizer nadam(rate = 0.002, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, growth = 0.004) {
  var m : type(variable) = zeros()
  var v : type(variable) = zeros()
  state product : f64[] = 1.0
  next_m = beta1 * m + (1 - beta1) * gradient
  next_v = beta2 * v + (1 - beta2) * square(gradient)
  m <- next_m
  v <- next_v
  t = cast(step + 1, f64)
  mu = nadam_share(beta1, t, growth)
  ahead = nadam_share(beta1, t + 1, growth)
  done = product * mu
  product <- done
  root = sqrt(next_v * cast(1 / (1 - beta2 ^ t), dtype(variable))) + epsilon
  here = cast(rate, f64) * (1 - mu) / (1 - done)
  there = cast(rate, f64) * ahead / (1 - done * ahead)
  variable <- variable - (cast(here, dtype(variable)) * gradient + cast(there, dtype(variable)) * next_m) / root
}

# Adam whose first steps, in which the second moment is not known well enough, are momentum's (Liu et al. 2020).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with radam()
optimizer radam(rate = 0.001, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8) {
  var m : type(variable) = zeros()
  var v : type(variable) = zeros()
  next_m = beta1 * m + (1 - beta1) * gradient
  next_v = beta2 * v + (1 - beta2) * square(gradient)
  m <- next_m
  v <- next_v
  t = cast(step + 1, f64)
  most = 2 / (1 - beta2) - 1.0
  length = most - 2 * t * beta2 ^ t / (1 - beta2 ^ t)
  known = length > 5
  l = select(known, length, most)
  share = sqrt((l - 4) * (l - 2) * most / ((most - 4) * (most - 2) * l) * (1 - beta2 ^ t))
  pace = cast(rate, f64) / (1 - beta1 ^ t)
  adaptive = cast(pace * share, dtype(variable)) * next_m / (sqrt(next_v) + epsilon)
  variable <- variable - select(known, adaptive, cast(pace, dtype(variable)) * next_m)
}

# The sign of a mean: variable - rate * (sign(beta1 * m + (1 - beta1) * g) + decay * variable); m = beta2 * m + (1 - beta2) * g
# (Chen et al. 2023).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with lion()
optimizer lion(rate = 1e-4, beta1 = 0.9, beta2 = 0.99, decay = 0.0) {
  var m : type(variable) = zeros()
  way = sign(beta1 * m + (1 - beta1) * gradient)
  m <- beta2 * m + (1 - beta2) * gradient
  variable <- variable - cast(rate, dtype(variable)) * (way + decay * variable)
}

# Adam's direction and the decay, made as long as the variable, times rate (You et al. 2020, algorithm 2).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with lamb()
optimizer lamb(rate = 0.001, decay = 0.0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6) {
  var m : type(variable) = zeros()
  var v : type(variable) = zeros()
  next_m = beta1 * m + (1 - beta1) * gradient
  next_v = beta2 * v + (1 - beta2) * square(gradient)
  m <- next_m
  v <- next_v
  t = cast(step + 1, f64)
  first = cast(1 / (1 - beta1 ^ t), dtype(variable))
  second = cast(1 / (1 - beta2 ^ t), dtype(variable))
  way = next_m * first / (sqrt(next_v * second) + epsilon) + decay * variable
  long = norm(variable)
  wide = norm(way)
  there = long > 0 and wide > 0
  trust = select(there, long / select(there, wide, 1), 1)
  variable <- variable - cast(rate, dtype(variable)) * trust * way
}

# Momentum whose rate is for each variable what its norm is to that of its gradient: v = mu * v + rate * trust * |w| / |g + decay
# * w| * (g + decay * w); w - v (You, Gitman, Ginsburg 2017).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with lars(0.1)
optimizer lars(rate = 0.01, decay = 0.0, trust = 0.001, mu = 0.9) {
  var velocity : type(variable) = zeros()
  way = gradient + decay * variable
  long = norm(variable)
  wide = norm(way)
  there = long > 0 and wide > 0
  local = select(there, trust * long / select(there, wide, 1), 1)
  next = mu * velocity + cast(rate, dtype(variable)) * local * way
  velocity <- next
  variable <- variable - next
}

# For adafactor: the root of the mean of the squares.
function root_mean_square(x) { return sqrt(mean(square(x))) }

# Second moments that for the last two axes are kept as those of rows and of columns alone, steps as large as the variable, and
# none of more than `limit` (Shazeer, Stern 2018, algorithm 4, as PyTorch writes it).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with adafactor(0.1)
optimizer adafactor(rate = 0.01, decay = 0.0, power = -0.8, least = 1e-3, limit = 1.0) {
  t = cast(step + 1, f64)
  new = cast(t ^ power, dtype(variable))
  tiny = 1.1920928955078125e-7 if dtype(variable) == f32 else 2.220446049250313e-16
  seen = square(gradient)
  if rank(variable) > 1 {
    dims = shape(variable)
    front = dims[0:rank(variable) - 2]
    state rows : dtype(variable)[...front, dims[-2], 1] = zeros()
    state columns : dtype(variable)[...front, 1, dims[-1]] = zeros()
    next_rows = rows + new * (mean(seen, axis = -1, keep = true) - rows)
    next_columns = columns + new * (mean(seen, axis = -2, keep = true) - columns)
    rows <- next_rows
    columns <- next_columns
    v = next_rows * next_columns / max(mean(next_rows, axis = -2, keep = true), tiny)
  } else {
    var squares : type(variable) = zeros()
    v = squares + new * (seen - squares)
    squares <- v
  }
  way = gradient * rsqrt(max(v, tiny * tiny))
  short = way / max(1, root_mean_square(way) / limit)
  pace = max(least, root_mean_square(variable)) * cast(min(cast(rate, f64), rsqrt(t)), dtype(variable))
  variable <- variable * (1 - cast(rate, dtype(variable)) * decay) - pace * short
}

# ---- what stands before an optimizer in a list, and returns what is its gradient; `only`: patterns of names ----

# Each element of the gradient, between -limit and limit.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with [clip_by_value(1.0), sgd(0.1)]
optimizer clip_by_value(limit) { return clip(gradient, -limit, limit) }

# The gradient of each variable, by itself of a norm of `limit` at most, which is taken as in clip_by_global_norm.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with [clip_by_norm(1.0), sgd(0.1)]
optimizer clip_by_norm(limit) {
  return gradient * cast(limit / max(global_norm([gradient]), limit), dtype(variable))
}

# All gradients together, as one vector, of a norm of `limit` at most (Pascanu, Mikolov, Bengio 2013). The norm is one of f64:
# that of no finite gradients of f32 is infinite, nor 0 unless they are. An infinite element becomes NaN and all others 0, as
# torch's clip_grad_norm_ has it; with a NaN all are NaN. Gradients of f64 are squared as they are, up to 1e154. The factor,
# limit / norm, is of the gradient's type: in f32 it has fewer digits below 1.2e-38, and is 0 below 7e-46, so that gradients
# whose norm is more than 8e37 times the limit are clipped coarsely, and beyond 1.4e45 times to 0.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with [clip_by_global_norm(1.0), sgd(0.1)]
optimizer clip_by_global_norm(limit) {
  return gradient * cast(limit / max(global_norm(gradients), limit), dtype(variable))
}

# gradient + decay * variable of the variables whose names `only` says and that have so many axes at least: before sgd L2
# regularization, behind scale_by_adam AdamW.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with [decay_weights(0.01, only = "*kernel"), sgd(0.1)]
optimizer decay_weights(decay, only = "*", rank_from = 0) {
  decays = matches(name, only) and rank(variable) >= rank_from
  return gradient + decay * variable if decays else gradient
}

# factor * gradient of the variables whose names `only` says.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with [scale(0.5), sgd(0.1)]
optimizer scale(factor, only = "*") { return factor * gradient if matches(name, only) else gradient }

# The trained variables that are called so, or lie in a layer that is, stay as they are, and their optimizer's state. States are not trained, and go on, as
# running averages do; which stay says nn.batch_norm.
#   input x : f32[B]
#   var w : f32[] = 1
#   var fixed : f32[] = 2
#   train mean(square(x * w - fixed)) with [freeze("fixed"), sgd(0.1)]
optimizer freeze(only) { return none if matches(name, only) else gradient }

# The direction of Adam, to which a rate is still to come (Kingma, Ba 2015, algorithm 1).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with [scale_by_adam(), sgd(0.1)]
optimizer scale_by_adam(beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8) {
  var m : type(variable) = zeros()
  var v : type(variable) = zeros()
  next_m = beta1 * m + (1 - beta1) * gradient
  next_v = beta2 * v + (1 - beta2) * square(gradient)
  m <- next_m
  v <- next_v
  t = cast(step + 1, f64)
  first  = cast(1 / (1 - beta1 ^ t), dtype(variable))
  second = cast(1 / (1 - beta2 ^ t), dtype(variable))
  return next_m * first / (sqrt(next_v * second) + epsilon)
}

# As long as the variable, where neither is 0 (You et al. 2020, LAMB).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with [scale_by_adam(), scale_by_trust_ratio(), sgd(0.1)]
optimizer scale_by_trust_ratio() {
  long  = norm(variable)
  wide  = norm(gradient)
  there = long > 0 and wide > 0
  return gradient * select(there, long / select(there, wide, 1), 1)
}

# The mean of the gradients of `steps` steps, in the last of them; what stands behind it does nothing in the others, and
# counts one step for all.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with [accumulate(4), sgd(0.1)]
optimizer accumulate(steps : int) {
  var total : type(variable) = zeros()
  sum  = total + gradient
  last = step % steps == steps - 1
  total <- select(last, 0, sum)
  return [sum / steps, last, step / steps]
}

# Gradients of a scaled loss: divided by `scale`; where `finite` is false nothing behind it changes, nor
# is the step counted. The loss, its scale and
# whether all gradients are finite come of nn.loss_scale.
#   input x : f32[B, 3]
#   var w : f32[3] = ones()
#   loss, scale, finite = nn.loss_scale(mean(square(sum(x * w, axis = 1))), [w])
#   train loss with [unscale(scale, finite), adam(0.01)]
optimizer unscale(scale, finite) {
  state done : i64[] = 0
  done <- done + cast(finite, i64)
  return [gradient / cast(scale, dtype(variable)), finite, done]
}

# What stands behind it reads and changes an f32 master of a variable with a storage of 16 bits, and the variable becomes the
# master, rounded: so no small change is lost (Micikevicius et al. 2018). The master begins with the variable's first value as it
# was before it was rounded. Other variables are as they are.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = ones() storage(bf16)
#   train mean(square(sum(x * w, axis = 1) - y)) with [master(), sgd(1e-4)]
optimizer master() { var value : type(variable) = variable masters(variable) }

# ---- what stands behind an optimizer ----

# Evaluation and prediction read the exponential moving average of what the variable becomes, from its first value on.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with [sgd(0.1), average(0.99)]
optimizer average(decay = 0.999) {
  var mean : type(variable) = variable replaces(variable)
  mean <- decay * mean + (1 - decay) * variable
}

# SPDX-License-Identifier: Apache-2.0

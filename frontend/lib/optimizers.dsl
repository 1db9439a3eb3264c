# How a step changes a variable. An optimizer runs once for each trained `variable`, sees its `gradient`, and may keep
# state of its own for it. `rate` is a number or a schedule.

# variable - rate * gradient.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with sgd(0.1)
optimizer sgd(rate = 0.01) { variable <- variable - cast(rate, dtype(variable)) * gradient }

# v = mu * v + gradient; variable - rate * v, with `nesterov` variable - rate * (gradient + mu * v) (Polyak 1964; Nesterov
# 1983, as Sutskever et al. 2013 write it).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with momentum(0.1, nesterov = true)
optimizer momentum(rate = 0.01, mu = 0.9, nesterov = false) {
  var velocity : type(variable) = zeros()
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
# TensorFlow's).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with adam(0.01)
optimizer adam(rate = 0.001, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7) {
  var m : type(variable) = zeros()
  var v : type(variable) = zeros()
  next_m = beta1 * m + (1 - beta1) * gradient
  next_v = beta2 * v + (1 - beta2) * square(gradient)
  m <- next_m
  v <- next_v
  rate_t = adam_rate(rate, beta1, beta2, dtype(variable))
  variable <- variable - rate_t * next_m / (sqrt(next_v) + epsilon)
}

# Adam with weights that decay on their own, by rate * decay * variable, not through the gradient (Loshchilov, Hutter 2019).
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with adamw(0.01, decay = 0.1)
optimizer adamw(rate = 0.001, decay = 0.01, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7) {
  var m : type(variable) = zeros()
  var v : type(variable) = zeros()
  next_m = beta1 * m + (1 - beta1) * gradient
  next_v = beta2 * v + (1 - beta2) * square(gradient)
  m <- next_m
  v <- next_v
  rate_t = adam_rate(rate, beta1, beta2, dtype(variable))
  variable <- variable - rate_t * next_m / (sqrt(next_v) + epsilon) - cast(rate, dtype(variable)) * decay * variable
}

# ---- what stands before an optimizer in a list, and returns what is its gradient; `only`: patterns of names ----

# Each element of the gradient, between -limit and limit.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with [clip_by_value(1.0), sgd(0.1)]
optimizer clip_by_value(limit) { return clip(gradient, -limit, limit) }

# The gradient of each variable, by itself of a norm of `limit` at most.
#   input x : f32[B, 3]
#   input y : f32[B]
#   var w : f32[3] = zeros()
#   train mean(square(sum(x * w, axis = 1) - y)) with [clip_by_norm(1.0), sgd(0.1)]
optimizer clip_by_norm(limit) {
  return gradient * (limit / max(norm(gradient), limit))
}

# All gradients together, as one vector, of a norm of `limit` at most (Pascanu, Mikolov, Bengio 2013).
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

# What is called so stays as it is, its optimizer's state too.
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

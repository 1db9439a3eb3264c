# How a step changes a variable. An optimizer runs once for each trained `variable`, sees its `gradient`, and may keep
# state of its own for it. `rate` is a number or a schedule.

optimizer sgd(rate = 0.01) { variable <- variable - cast(rate, dtype(variable)) * gradient }

optimizer momentum(rate = 0.01, mu = 0.9, nesterov = false) {
  var velocity : type(variable) = zeros()
  next = mu * velocity + gradient
  velocity <- next
  variable <- variable - cast(rate, dtype(variable)) * (gradient + mu * next if nesterov else next)
}

optimizer adagrad(rate = 0.01, initial = 0.1, epsilon = 1e-7) {
  var total : type(variable) = constant(initial)
  next = total + square(gradient)
  total <- next
  variable <- variable - cast(rate, dtype(variable)) * gradient / (sqrt(next) + epsilon)
}

optimizer rmsprop(rate = 0.001, decay = 0.9, epsilon = 1e-7) {
  var v : type(variable) = zeros()
  next = decay * v + (1 - decay) * square(gradient)
  v <- next
  variable <- variable - cast(rate, dtype(variable)) * gradient / (sqrt(next) + epsilon)
}

# The rate of step t, corrected for moments that begin at zero. In f64: the first steps are all in what beta2 ^ t lacks
# to 1.
function adam_rate(rate, beta1, beta2, to) {
  t = cast(step + 1, f64)
  return cast(cast(rate, f64) * sqrt(1 - beta2 ^ t) / (1 - beta1 ^ t), to)
}

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

# Adam with weights that decay on their own, not through the gradient.
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

# The gradient of each element, and of each variable (its norm).
optimizer clip_by_value(limit) { return clip(gradient, -limit, limit) }
optimizer clip_by_norm(limit) {
  return gradient * (limit / max(norm(gradient), limit))
}

# All gradients together, as one vector (Pascanu, Mikolov, Bengio 2013).
optimizer clip_by_global_norm(limit) {
  return gradient * cast(limit / max(global_norm(gradients), limit), dtype(variable))
}

# Weights that decay through the gradient: before sgd L2 regularization, behind scale_by_adam AdamW.
optimizer decay_weights(decay, only = "*", rank_from = 0) {
  decays = matches(name, only) and rank(variable) >= rank_from
  return gradient + decay * variable if decays else gradient
}

optimizer scale(factor, only = "*") { return factor * gradient if matches(name, only) else gradient }

# What is called so stays as it is, its optimizer's state too.
optimizer freeze(only) { return none if matches(name, only) else gradient }

# The direction of Adam, to which a rate is still to come (Kingma, Ba 2015, algorithm 1).
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
optimizer scale_by_trust_ratio() {
  long  = norm(variable)
  wide  = norm(gradient)
  there = long > 0 and wide > 0
  return gradient * select(there, long / select(there, wide, 1), 1)
}

# The mean of the gradients of `steps` steps, in the last of them; what stands behind it does nothing in the others, and
# counts one step for all.
optimizer accumulate(steps : int) {
  var total : type(variable) = zeros()
  sum  = total + gradient
  last = step % steps == steps - 1
  total <- select(last, 0, sum)
  return [sum / steps, last, step / steps]
}

# ---- what stands behind an optimizer ----

# Evaluation and prediction read the exponential moving average of what the variable becomes, from its first value on.
optimizer average(decay = 0.999) {
  var mean : type(variable) = variable replaces(variable)
  mean <- decay * mean + (1 - decay) * variable
}

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

# First values of variables. An initializer sees the `shape` and the `dtype` of the variable it is called for.

initializer zeros() { return 0 }
initializer ones() { return 1 }
initializer constant(value) { return value }
initializer uniform(low = -0.05, high = 0.05) { return random_uniform(dtype[...shape], low, high) }
initializer normal(mean = 0.0, stddev = 0.05) { return random_normal(dtype[...shape], mean, stddev) }

# How many inputs one output of a kernel [..., in, out] sums, and how many outputs one input goes to.
function fan_in(dims) {
  if size(dims) == 1 { return dims[0] }
  n = 1
  for d in dims { n = n * d }
  return n / dims[-1]
}

function fan_out(dims) {
  if size(dims) == 1 { return dims[0] }
  n = 1
  for d in dims { n = n * d }
  return n / dims[-2]
}

initializer glorot_uniform() {
  limit = sqrt(6.0 / (fan_in(shape) + fan_out(shape)))
  return random_uniform(dtype[...shape], -limit, limit)
}
initializer glorot_normal() { return random_normal(dtype[...shape], 0.0, sqrt(2.0 / (fan_in(shape) + fan_out(shape)))) }

initializer he_uniform() {
  limit = sqrt(6.0 / fan_in(shape))
  return random_uniform(dtype[...shape], -limit, limit)
}
initializer he_normal() { return random_normal(dtype[...shape], 0.0, sqrt(2.0 / fan_in(shape))) }

initializer lecun_uniform() {
  limit = sqrt(3.0 / fan_in(shape))
  return random_uniform(dtype[...shape], -limit, limit)
}
initializer lecun_normal() { return random_normal(dtype[...shape], 0.0, sqrt(1.0 / fan_in(shape))) }

# First values of variables. An initializer sees the `shape` and the `dtype` of the variable it is called for.

# 0.
#   var w : f32[3, 2] = zeros()
#   input x : f32[B, 3]
#   predict y = x @ w
initializer zeros() { return 0 }

# 1.
#   var w : f32[3, 2] = ones()
#   input x : f32[B, 3]
#   predict y = x @ w
initializer ones() { return 1 }

# One number.
#   var w : f32[3, 2] = constant(0.5)
#   input x : f32[B, 3]
#   predict y = x @ w
initializer constant(value) { return value }

# Even between `low` and `high`.
#   var w : f32[3, 2] = uniform(-1, 1)
#   input x : f32[B, 3]
#   predict y = x @ w
initializer uniform(low = -0.05, high = 0.05) { return random_uniform(dtype[...shape], low, high) }

# Of a normal distribution.
#   var w : f32[3, 2] = normal(stddev = 0.1)
#   input x : f32[B, 3]
#   predict y = x @ w
initializer normal(mean = 0.0, stddev = 0.05) { return random_normal(dtype[...shape], mean, stddev) }

# How many inputs one output of a kernel of the shape [..., in, out] sums.
#   input x : f32[B, 3]
#   var w : f32[3, 2] = uniform(high = 1.0 / fan_in([3, 2]))
#   predict y = x @ w
function fan_in(dims) {
  if size(dims) == 1 { return dims[0] }
  n = 1
  for d in dims { n = n * d }
  return n / dims[-1]
}

# How many outputs one input of a kernel of the shape [..., in, out] goes to.
#   input x : f32[B, 3]
#   var w : f32[3, 2] = uniform(high = 1.0 / fan_out([3, 2]))
#   predict y = x @ w
function fan_out(dims) {
  if size(dims) == 1 { return dims[0] }
  n = 1
  for d in dims { n = n * d }
  return n / dims[-2]
}

# Even within sqrt(6 / (fan_in + fan_out)) (Glorot, Bengio 2010).
#   var w : f32[3, 2] = glorot_uniform()
#   input x : f32[B, 3]
#   predict y = x @ w
initializer glorot_uniform() {
  limit = sqrt(6.0 / (fan_in(shape) + fan_out(shape)))
  return random_uniform(dtype[...shape], -limit, limit)
}

# Normal, of the variance 2 / (fan_in + fan_out) (Glorot, Bengio 2010).
#   var w : f32[3, 2] = glorot_normal()
#   input x : f32[B, 3]
#   predict y = x @ w
initializer glorot_normal() { return random_normal(dtype[...shape], 0.0, sqrt(2.0 / (fan_in(shape) + fan_out(shape)))) }

# Even within sqrt(6 / fan_in) (He et al. 2015).
#   var w : f32[3, 2] = he_uniform()
#   input x : f32[B, 3]
#   predict y = x @ w
initializer he_uniform() {
  limit = sqrt(6.0 / fan_in(shape))
  return random_uniform(dtype[...shape], -limit, limit)
}

# Normal, of the variance 2 / fan_in (He et al. 2015).
#   var w : f32[3, 2] = he_normal()
#   input x : f32[B, 3]
#   predict y = x @ w
initializer he_normal() { return random_normal(dtype[...shape], 0.0, sqrt(2.0 / fan_in(shape))) }

# Even within sqrt(3 / fan_in) (LeCun et al. 1998).
#   var w : f32[3, 2] = lecun_uniform()
#   input x : f32[B, 3]
#   predict y = x @ w
initializer lecun_uniform() {
  limit = sqrt(3.0 / fan_in(shape))
  return random_uniform(dtype[...shape], -limit, limit)
}

# Normal, of the variance 1 / fan_in (LeCun et al. 1998).
#   var w : f32[3, 2] = lecun_normal()
#   input x : f32[B, 3]
#   predict y = x @ w
initializer lecun_normal() { return random_normal(dtype[...shape], 0.0, sqrt(1.0 / fan_in(shape))) }

# SPDX-License-Identifier: Apache-2.0

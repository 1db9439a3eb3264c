# Functions of mathematics that are made of others, by element, always in scope.

# log(sigmoid(x)), which does not underflow.
#   input x : f32[B]
#   predict y = log_sigmoid(x)
function log_sigmoid(x) { return -softplus(-x) }

# log(p / (1 - p)), the inverse of sigmoid; near 1/2 by 2 p - 1, which is exact there.
#   input x : f32[B]
#   predict y = logit(sigmoid(x))
function logit(p) {
  middle = p > 0.3 and p < 0.7
  s = select(middle, 2 * p - 1, 0)
  return select(middle, log1p(s) - log1p(-s), log(p) - log1p(-p))
}

# log(e^x + e^y), which does not overflow.
#   input x : f32[B]
#   predict y = logaddexp(x, 2 * x)
function logaddexp(x, y) {
  apart = select(is_inf(x) and x == y, 0, y - x)
  return select(apart <= 0, x + softplus(apart), y + softplus(-apart))
}

# x * log(y), and 0 where x is 0, whatever y is.
#   input x : f32[B]
#   predict y = xlogy(x, x)
function xlogy(x, y) {
  lost = x == 0 and not (is_finite(y) and y > 0)
  return x * log(select(lost, stop_gradient(x) + 1, y)) # which is 1 there, of the type of x
}

# sin(pi x) / (pi x), and 1 at 0; near it by its series, as in the slope of the quotient all digits would cancel.
#   input x : f32[B]
#   predict y = sinc(x)
function sinc(x) {
  near = abs(x) < 0.25
  a = pi * select(near, 1, x)
  u = square(pi * select(near, x, 0))
  series = 1 - u / 6 * (1 - u / 20 * (1 - u / 42 * (1 - u / 72 * (1 - u / 110 * (1 - u / 156 * (1 - u / 210))))))
  return select(near, series, sin(a) / a)
}

# P(Z <= x) of a normal Z.
#   input x : f32[B]
#   predict y = normal_cdf(x)
function normal_cdf(x) { return 0.5 * erfc(x * -0.7071067811865476) }

# For erfinv: a step of Newton's. What is missing is that of erfc where x is near 1; `rest` is 1 - x.
function erfinv_step(y, x, rest) {
  missing = select(x < 0.5, erf(y) - x, rest - erfc(y))
  return y - missing * exp(square(y)) * 0.886226925452758
}

# For erfinv and normal_quantile: where erf is x, from 0 to 1, and erfc is `rest`, of which `l` is log(rest (2 - rest)).
function erf_is(x, rest, l, steps : int) {
  t = 4.330746750799873 + 0.5 * l
  y = stop_gradient(sqrt(max(sqrt(max(square(t) - l / 0.147, 0)) - t, 0)))
  for i in 0..steps { y = stop_gradient(erfinv_step(y, x, rest)) }
  for i in 0..2 { y = erfinv_step(y, x, rest) }
  return y
}

# The y of which erf(y) = x; -Inf and Inf at -1 and 1, NaN beyond. By Newton's method, out of Winitzki's approximation (2008);
# gradients to the third order, at -1 and 1 of 0.
#   input x : f32[B]
#   predict y = erfinv(x / 4)
function erfinv(x) {
  inside = abs(x) < 1
  turned = copysign(1, x)
  a = turned * select(inside, x, 0)
  y = erf_is(a, 1 - a, log1p(-a) + log1p(a), 3)
  return select(inside, turned * y, stop_gradient(select(abs(x) == 1, x * inf, x * (inf - inf))))
}

# The x of which normal_cdf(x) = p; -Inf and Inf at 0 and 1, NaN beyond. p itself is used near 0, and not 2 p - 1.
#   input x : f32[B]
#   predict y = normal_quantile(0.2 + x / 8)
function normal_quantile(p) {
  inside = p > 0 and p < 1
  q = select(inside, p, 0.5)
  low = q < 0.5
  rest = 2 * select(low, q, 1 - q)
  y = erf_is(select(low, 1 - 2 * q, 2 * q - 1), rest, log(rest) + log(2 - rest), 5)
  ends = stop_gradient(select(p == 0, -inf, select(p == 1, inf, p * (inf - inf))))
  return select(inside, 1.4142135623730951 * select(low, -y, y), ends)
}

# log |gamma(x)|, by Stirling's series of x + 8 (Abramowitz, Stegun 6.1.40), of x < 1/2 by reflection: as exact as numbers of the
# size of lgamma(|x| + 9) are, from -100 on within 4 units of their last place, however near a pole. Inf at 0, -1, -2, ...
#   input x : f32[B]
#   predict y = lgamma(x + 0.5)
function lgamma(x) {
  mirrored = x < 0.5
  a = select(mirrored, 1 - x, x)
  low = a < 8
  b = select(low, a, 1)
  product = b
  for i in 1..8 { product = product * (b + i) }
  z = select(low, a + 8, a)
  u = 1.0 / square(z)
  tail = (1.0 / 12 - u * (1.0 / 360 - u * (1.0 / 1260 - u * (1.0 / 1680 - u * (1.0 / 1188
          - u * (691.0 / 360360 - u / 156.0)))))) / z
  above = (z - 0.5) * (log(z) - 1) + 0.4189385332046727 + tail - select(low, log(product), 0)
  there = select(mirrored, x - round(x), 0.5)
  y = select(mirrored, 1.1447298858494002 - log(sin(pi * abs(there))) - above, above)
  return select(is_inf(x), abs(x), y)
}

# The derivative of lgamma, by the same way (Abramowitz, Stegun 6.3.18); its own derivatives are the polygammas. From -100 on within 8
# units of the last place of it or of 4, whichever is larger, however near a pole. NaN or Inf at 0, -1, -2, ...
#   input x : f32[B]
#   predict y = digamma(x + 0.5)
function digamma(x) {
  mirrored = x < 0.5
  a = select(mirrored, 1 - x, x)
  low = a < 8
  b = select(low, a, 1)
  parts = 1.0 / b
  for i in 1..8 { parts = parts + 1.0 / (b + i) }
  z = select(low, a + 8, a)
  u = 1.0 / square(z)
  tail = u * (1.0 / 12 - u * (1.0 / 120 - u * (1.0 / 252 - u * (1.0 / 240 - u * (1.0 / 132
         - u * (691.0 / 32760 - u / 12.0))))))
  above = log(z) - 0.5 / z - tail - select(low, parts, 0)
  there = select(mirrored, x - round(x), 0.25)
  return select(mirrored, above - pi / tan(pi * there), above)
}

# log(gamma(x) gamma(y) / gamma(x + y)).
#   input x : f32[B]
#   predict y = lbeta(x + 1, x + 2)
function lbeta(x, y) { return lgamma(x) + lgamma(y) - lgamma(x + y) }

# SPDX-License-Identifier: Apache-2.0

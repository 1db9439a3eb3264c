/* SPDX-License-Identifier: Apache-2.0 */
/* Steps shared by the math families. */
#include "ir/scalar/math.h"

sval math_bits(struct sprog *p, sval x) { return s_bitcast(p, s_dtype(p, x) == DT_F32 ? DT_I32 : DT_I64, x); }

sval math_float(struct sprog *p, sval bits) {
  return s_bitcast(p, s_dtype(p, bits) == DT_I32 ? DT_F32 : DT_F64, bits);
}

/* c[0] + c[1] x + ... + c[n-2] x^(n-2) + top x^(n-1); n >= 2. */
static sval poly_on(struct sprog *p, sval x, const double *c, int n, sval top) {
  sval y = top;
  for (int i = n - 2; i >= 0; i--) y = s_fma(p, y, x, s_const(p, s_dtype(p, x), c[i]));
  return y;
}

sval math_poly(struct sprog *p, sval x, const double *c, int n) {
  return poly_on(p, x, c, n, s_const(p, s_dtype(p, x), c[n - 1]));
}

sval math_clamp(struct sprog *p, sval x, double lo, double hi) {
  enum dtype d = s_dtype(p, x);
  sval l = s_const(p, d, lo), h = s_const(p, d, hi);
  if (lo > -INFINITY) x = s_select(p, lt(p, x, l), l, x);
  if (hi < INFINITY) x = s_select(p, lt(p, h, x), h, x);
  return x;
}

sval math_sign_bit(struct sprog *p, sval x) {
  sval b = math_bits(p, x);
  return and(p, b, s_dtype(p, b) == DT_I32 ? i32(p, UINT32_C(1) << 31) : i64(p, UINT64_C(1) << 63));
}

sval math_with_sign(struct sprog *p, sval x, sval sign) {
  return math_float(p, or (p, math_bits(p, x), math_sign_bit(p, sign)));
}

sval m_copysign(struct sprog *p, sval x, sval y) { return math_with_sign(p, mag(p, x), y); }

sval math_wide(struct sprog *p, sval x, sval (*f)(struct sprog *, sval, bool)) {
  enum dtype d = s_dtype(p, x);
  return s_convert(p, d, f(p, s_convert(p, DT_F64, x), d == DT_F64));
}

sval math_wide2(struct sprog *p, sval x, sval y, sval (*f)(struct sprog *, sval, sval, bool)) {
  enum dtype d = s_dtype(p, x);
  return s_convert(p, d, f(p, s_convert(p, DT_F64, x), s_convert(p, DT_F64, y), d == DT_F64));
}

sval math_scale(struct sprog *p, sval y, sval t) {
  bool single = s_dtype(p, y) == DT_F32;
  int mantissa = single ? 23 : 52;
  sval i = math_bits(p, t);
  sval exponent = single ? i32(p, 0xff800000) : i64(p, UINT64_C(0xfff) << 52);
  sval one = math_bits(p, s_const(p, s_dtype(p, y), 1));
  sval half = and(p, shl(p, i, mantissa - 1), exponent); /* n/2, rounded down, at its place in the exponent */
  sval rest = sub(p, shl(p, i, mantissa), half);
  return mul(p, mul(p, y, math_float(p, add(p, half, one))), math_float(p, add(p, rest, one)));
}

sval math_pow2(struct sprog *p, sval t, int k) {
  return math_float(p, add(p, shl(p, math_bits(p, t), 52), i64(p, (uint64_t)(1023 + k) << 52)));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithms and the inverse hyperbolic functions: x = 2^k (1+f) with 1+f in [sqrt(1/2), sqrt(2)), and
 * log(1+f) = 2 atanh(s), s = f / (2+f), an odd series in s (Tang, "Table-driven implementation of the
 * logarithm function", ACM TOMS 16, 1990, without the table). f32 log and log2 take a polynomial in f and
 * no division. */
#include "ir/scalar/math.h"

#define LN2_HI        0x1.62e42feep-1 /* 33 bits: k LN2_HI is exact */
#define LN2_LO        0x1.a39ef35793c76p-33
#define SQRT_HALF_F32 0x3f3504f3
#define SQRT_HALF_F64 UINT64_C(0x3fe6a09e667f3bcd)
#define COUNT(a)      ((int)(sizeof(a) / sizeof *(a)))

struct math_split math_split(struct sprog *p, sval x, bool subnormals) {
  bool single = s_dtype(p, x) == DT_F32;
  enum dtype d = s_dtype(p, x);
  int mantissa = single ? 23 : 52;
  sval small = -1;
  if (subnormals) {
    small = lt(p, x, s_const(p, d, single ? 0x1p-126 : 0x1p-1022));
    x = s_select(p, small, mul(p, x, s_const(p, d, ldexp(1, mantissa))), x);
  }
  sval base = single ? i32(p, SQRT_HALF_F32) : i64(p, SQRT_HALF_F64);
  sval i = sub(p, math_bits(p, x), base);
  sval k = s_convert(p, d, sar(p, i, mantissa));
  if (subnormals) k = s_select(p, small, sub(p, k, s_const(p, d, mantissa)), k);
  sval rest = and(p, i, single ? i32(p, 0x7fffff) : i64(p, (UINT64_C(1) << 52) - 1));
  return (struct math_split){k, sub(p, math_float(p, add(p, rest, base)), s_const(p, d, 1))};
}

/* y for finite x > 0; -inf, NaN, inf where a logarithm has them. */
static sval log_special(struct sprog *p, sval x, sval y) {
  enum dtype d = s_dtype(p, x);
  sval zero = s_const(p, d, 0), inf = s_const(p, d, INFINITY);
  sval other = s_select(p, eq(p, x, zero), s_const(p, d, -INFINITY), s_const(p, d, NAN));
  y = s_select(p, lt(p, zero, x), y, other);
  return s_select(p, lt(p, x, inf), y, x);
}

/* (2 atanh(s) - 2s) / s^3 in s^2; errors of the whole logarithm 2^-37.6 and 2^-59.5. */
static const double log_short[] = {0x1.555554fd9dd47p-1, 0x1.999a7a890be4p-2, 0x1.2438d805d85b9p-2,
                                   0x1.e2f653f5f9a87p-3};
static const double log_full[] = {0x1.5555555555592p-1, 0x1.999999997ff1ap-2, 0x1.24924941e1382p-2,
                                  0x1.c71c52146dce3p-3, 0x1.74663ce6f627bp-3, 0x1.39a1e9777b2bfp-3,
                                  0x1.2f03b3286d85bp-3};

sval math_log_f64(struct sprog *p, struct math_split v, sval c, bool full) {
  sval s = quo(p, v.f, add(p, v.f, f64(p, 2))), z = mul(p, s, s);
  if (!full) {
    sval r = mul(p, z, math_poly(p, z, log_short, COUNT(log_short)));
    sval y = s_fma(p, s, r, add(p, s, s));
    if (c >= 0) y = add(p, y, c);
    return v.k < 0 ? y : s_fma(p, v.k, f64(p, M_LN2), y);
  }
  /* 2s = f - s f and s f = f^2/2 - s f^2/2: what is added to the exact f stays small. */
  sval h = mul(p, mul(p, v.f, v.f), f64(p, 0.5));
  sval r = mul(p, z, math_poly(p, z, log_full, COUNT(log_full)));
  sval low = mul(p, s, add(p, h, r));
  if (v.k >= 0) low = s_fma(p, v.k, f64(p, LN2_LO), low);
  if (c >= 0) low = add(p, low, c);
  sval y = sub(p, v.f, sub(p, h, low));
  return v.k < 0 ? y : s_fma(p, v.k, f64(p, LN2_HI), y);
}

static sval log_f64(struct sprog *p, sval x, bool full) {
  return log_special(p, x, math_log_f64(p, math_split(p, x, full), -1, full));
}

/* log(1+f) = f + f^2 q(f), error 2^-25. */
static const double log_f32[] = {-0x1.fffffap-2, 0x1.5556f6p-2, -0x1.0004cap-2, 0x1.98d23p-3,
                                 -0x1.535262p-3, 0x1.317f4ap-3, -0x1.2558f2p-3, 0x1.66cc1p-4};

sval m_log(struct sprog *p, sval x) {
  if (s_dtype(p, x) == DT_F64) return log_f64(p, x, true);
  struct math_split v = math_split(p, x, true);
  sval y = s_fma(p, mul(p, v.f, v.f), math_poly(p, v.f, log_f32, COUNT(log_f32)), v.f);
  return log_special(p, x, s_fma(p, v.k, f32(p, M_LN2), y));
}

/* log2(1+f) = f q(f), error 2^-25.8. */
static const double log2_f32[] = {0x1.715476p+0, -0x1.71546ep-1, 0x1.ec7246p-2, -0x1.715d42p-2,
                                  0x1.2726e4p-2, -0x1.e9afcap-3, 0x1.ae753ap-3, -0x1.9ae344p-3,
                                  0x1.408fccp-3, -0x1.aba8b4p-5};

sval m_log2(struct sprog *p, sval x) {
  struct math_split v = math_split(p, x, true);
  if (s_dtype(p, x) == DT_F32)
    return log_special(p, x, s_fma(p, v.f, math_poly(p, v.f, log2_f32, COUNT(log2_f32)), v.k));
  struct math_split m = {-1, v.f};
  sval y = math_log_f64(p, m, -1, true);
  y = s_fma(p, y, f64(p, 0x1.71547652b82fep+0), mul(p, y, f64(p, 0x1.777d0ffda0d24p-56)));
  return log_special(p, x, add(p, v.k, y));
}

static sval log10_f64(struct sprog *p, sval x, bool full) {
  struct math_split v = math_split(p, x, full), m = {-1, v.f};
  sval y = mul(p, math_log_f64(p, m, -1, full), f64(p, 0x1.bcb7b1526e50ep-2));
  if (full) y = s_fma(p, v.k, f64(p, 0x1.fef311f12b358p-46), y);
  y = s_fma(p, v.k, f64(p, full ? 0x1.34413509f78p-2 : 0x1.34413509f79ffp-2), y);
  return log_special(p, x, y);
}

sval m_log10(struct sprog *p, sval x) { return math_wide(p, x, log10_f64); }

static sval log1p_f64(struct sprog *p, sval x, bool full) {
  sval one = f64(p, 1), u = add(p, x, one), c = -1;
  if (full) { /* what rounding took from u */
    c = s_select(p, lt(p, x, one), sub(p, x, sub(p, u, one)), sub(p, one, sub(p, u, x)));
    c = quo(p, c, u);
  }
  sval y = math_log_f64(p, math_split(p, u, false), c, full);
  y = s_select(p, le(p, mag(p, x), f64(p, full ? 0 : 0x1p-28)), x, y);
  sval other = s_select(p, eq(p, x, f64(p, -1)), f64(p, -INFINITY), f64(p, NAN));
  y = s_select(p, lt(p, f64(p, -1), x), y, other);
  return s_select(p, lt(p, x, f64(p, INFINITY)), y, x);
}

static sval asinh_f64(struct sprog *p, sval x, bool full) {
  sval a = mag(p, x), z = mul(p, a, a), one = f64(p, 1);
  sval big = lt(p, f64(p, 0x1p54), a);
  sval y = add(p, a, quo(p, z, add(p, one, root(p, add(p, one, z)))));
  y = log1p_f64(p, s_select(p, big, a, y), full);
  return math_with_sign(p, add(p, y, s_select(p, big, f64(p, M_LN2), f64(p, 0))), x);
}

static sval acosh_f64(struct sprog *p, sval x, bool full) {
  sval t = sub(p, x, f64(p, 1));
  sval big = lt(p, f64(p, 0x1p54), x);
  sval y = add(p, t, root(p, mul(p, t, add(p, t, f64(p, 2)))));
  y = log1p_f64(p, s_select(p, big, x, y), full);
  y = add(p, y, s_select(p, big, f64(p, M_LN2), f64(p, 0)));
  return s_select(p, lt(p, x, f64(p, 1)), f64(p, NAN), y);
}

static sval atanh_f64(struct sprog *p, sval x, bool full) {
  sval a = mag(p, x);
  sval y = log1p_f64(p, quo(p, add(p, a, a), sub(p, f64(p, 1), a)), full);
  return math_with_sign(p, mul(p, y, f64(p, 0.5)), x);
}

sval m_log1p(struct sprog *p, sval x) { return math_wide(p, x, log1p_f64); }
sval m_asinh(struct sprog *p, sval x) { return math_wide(p, x, asinh_f64); }
sval m_acosh(struct sprog *p, sval x) { return math_wide(p, x, acosh_f64); }
sval m_atanh(struct sprog *p, sval x) { return math_wide(p, x, atanh_f64); }

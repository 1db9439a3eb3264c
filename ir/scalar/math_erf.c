/* SPDX-License-Identifier: Apache-2.0 */
/* erf and erfc. For x >= 0, (1+2x) e^(x^2) erfc x is smooth and bounded and is fitted by one polynomial in
 * (x-k)/(x+k) (Shepherd and Laframboise, "Chebyshev approximation of (1+2x) exp(x^2) erfc x", Math. Comp.
 * 36, 1981); erf has a series in x^2 below 1. */
#include "ir/scalar/math.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* Errors 2^-29 up to 10.1 and 2^-54.1 up to 27.3, k = 3. */
static const double erfc_short[] = {0x1.40c522db8c2eap+0,   -0x1.15c0892fbcc29p-3, -0x1.85a194c346016p-5,
                                    0x1.09840f364537ap-3,   -0x1.e888ae907db93p-4, 0x1.17bd4d7515377p-4,
                                    -0x1.85e61583f2305p-6,  0x1.5082d46318687p-9,  0x1.0661bf7cb6dfep-9,
                                    -0x1.97ace522500bfp-11, -0x1.192687a4fcec5p-12};
static const double erfc_full[] = {
    0x1.40c522d7e4987p+0,  -0x1.15c084bb9e8e1p-3,  -0x1.85a15c58a9e55p-5,  0x1.098366a5b3f99p-3,
    -0x1.e88b803a54c2bp-4, 0x1.17ca28780ba44p-4,   -0x1.8574c4085200dp-6,  0x1.4b884e1713cdap-9,
    0x1.ef1bdb20c80c6p-10, -0x1.98db4bd5d5c1ep-11, -0x1.b911aeed87e97p-14, 0x1.0659d87175b75p-13,
    0x1.4bf8e7bd4396p-18,  -0x1.5132b8af73eb4p-16, -0x1.8538cd19c3afdp-21, 0x1.d1838ccdc7a55p-19,
    0x1.73e78e54c772ep-22, -0x1.47f40a4abd0ebp-21, -0x1.17db29fbee0a6p-23, 0x1.9d366749eeb81p-24,
    0x1.2156385b828cep-25, -0x1.5305b2872b514p-27, -0x1.465ad91a13d57p-28};

/* erfc a for a >= 0. */
static sval erfc_positive(struct sprog *p, sval a, bool full) {
  a = math_clamp(p, a, -INFINITY, full ? 27.3 : 10.1);
  sval k = f64(p, 3), t = quo(p, sub(p, a, k), add(p, a, k));
  sval q =
      full ? math_poly(p, t, erfc_full, COUNT(erfc_full)) : math_poly(p, t, erfc_short, COUNT(erfc_short));
  sval h = mul(p, a, a), low = full ? neg(p, s_fma(p, a, a, neg(p, h))) : -1;
  sval e = math_exp_f64(p, neg(p, h), low, 0, full);
  sval one = f64(p, 1), twice = add(p, a, a), d = add(p, twice, one);
  if (!full) return mul(p, e, quo(p, q, d));
  /* q / (1+2a) with the roundings of the sum and of the quotient put right; the former for a > 1/2 */
  sval d_lo = sub(p, one, sub(p, d, twice)), over = quo(p, one, d), y = mul(p, q, over);
  sval rest = s_fma(p, neg(p, y), d_lo, s_fma(p, neg(p, y), d, q));
  return mul(p, e, s_fma(p, rest, over, y));
}

/* erf x = x P(x^2) for |x| < 1, error 2^-55.4. */
static const double erf_full[] = {0x1.20dd750429b6dp+0,   -0x1.812746b0379bdp-2,  0x1.ce2f21a040d16p-4,
                                  -0x1.b82ce311fa933p-6,  0x1.565bccf92b234p-8,   -0x1.c02db03dd66f4p-11,
                                  0x1.f9a2baa905de2p-14,  -0x1.f4ca4d70ca11ap-17, 0x1.b97fd3f1a57b6p-20,
                                  -0x1.5c0727ae0b8eep-23, 0x1.d71b151e10695p-27,  -0x1.abae5d1148c06p-31};

static sval erf_near(struct sprog *p, sval x) {
  return mul(p, x, math_poly(p, mul(p, x, x), erf_full, COUNT(erf_full)));
}

static sval erfc_f64(struct sprog *p, sval x, bool full) {
  sval a = mag(p, x), y = erfc_positive(p, a, full);
  y = s_select(p, lt(p, x, f64(p, 0)), sub(p, f64(p, 2), y), y);
  /* Towards 0 the terms of the polynomial cancel. */
  return full ? s_select(p, lt(p, a, f64(p, 0.5)), sub(p, f64(p, 1), erf_near(p, x)), y) : y;
}

/* erf x = x + x P(x^2) for |x| < 1, error 2^-29; 1 - Q(x)^4 above, 2^-26.5, and 1 from 3.95 on. */
static const double erf_f32[] = {0x1.06eba8p-3, -0x1.81273ep-2,  0x1.ce2ce6p-4, -0x1.b7f71ap-6,
                                 0x1.53f22ep-8, -0x1.a351cap-11, 0x1.477382p-14};
static const double erf_far[] = {0x1.008eecp+0,  -0x1.2ca5ep-2,  -0x1.7e1402p-4,
                                 -0x1.1fc018p-6, 0x1.676d2cp-5,  -0x1.a2c952p-7,
                                 0x1.9b52d2p-11, 0x1.725afap-13, -0x1.741bccp-16};

sval m_erf(struct sprog *p, sval x) {
  sval a = mag(p, x), near, far;
  if (s_dtype(p, x) == DT_F64) {
    near = erf_near(p, a);
    far = sub(p, f64(p, 1), erfc_positive(p, a, true));
  } else {
    a = math_clamp(p, a, -INFINITY, 3.95);
    near = s_fma(p, a, math_poly(p, mul(p, a, a), erf_f32, COUNT(erf_f32)), a);
    sval q = math_poly(p, a, erf_far, COUNT(erf_far));
    q = mul(p, q, q);
    far = s_fma(p, neg(p, q), q, f32(p, 1));
  }
  sval small = lt(p, a, s_const(p, s_dtype(p, x), 1));
  return math_with_sign(p, s_select(p, small, near, far), x);
}

sval m_erfc(struct sprog *p, sval x) { return math_wide(p, x, erfc_f64); }

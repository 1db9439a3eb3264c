/* SPDX-License-Identifier: Apache-2.0 */
/* asin, acos, atan, atan2, with the classic reductions (Cody and Waite): asin x = pi/2 - 2 asin
 * sqrt((1-x)/2) above one half; atan by (x-1)/(x+1) above tan(pi/8) and -1/x above tan(3 pi/8). */
#include "ir/scalar/math.h"

#define COUNT(a)   ((int)(sizeof(a) / sizeof *(a)))
#define PI         0x1.921fb54442d18p+1
#define HALF_PI    0x1.921fb54442d18p+0
#define HALF_PI_LO 0x1.1a62633145c07p-54

/* asin s = s + s^3 P(s^2) for s^2 <= 1/4, errors 2^-31.8 and 2^-59.4. */
static const double asin_short[] = {0x1.55554c5f5ebb6p-3, 0x1.33387cc003fc9p-4, 0x1.6caecd95cb0efp-5,
                                    0x1.0491c151e84eap-5, 0x1.d91e03cd6c737p-7, 0x1.33563f54fb4eap-5};
static const double asin_full[] = {0x1.5555555555577p-3, 0x1.333333332e108p-4, 0x1.6db6db7213decp-5,
                                   0x1.f1c71a9481d9fp-6, 0x1.6e8bdeeaac6bp-6,  0x1.1c49efbb6514bp-6,
                                   0x1.ca1f9ac688e71p-7, 0x1.758527ad02669p-7, 0x1.613e80a79e1acp-7,
                                   0x1.e5da542829c8p-9,  0x1.63a4246fd1fbfp-6, -0x1.5807b23bb6bdap-6,
                                   0x1.0b49c0e969f92p-5};

/* |x| to the argument s of the series, and asin s. */
struct half {
  sval large, s, asin;
};

static struct half asin_half(struct sprog *p, sval a, bool full) {
  struct half h;
  h.large = lt(p, f64(p, 0.5), a);
  sval folded = s_fma(p, a, f64(p, -0.5), f64(p, 0.5));
  sval z = s_select(p, h.large, folded, mul(p, a, a));
  h.s = s_select(p, h.large, root(p, folded), a);
  sval q =
      full ? math_poly(p, z, asin_full, COUNT(asin_full)) : math_poly(p, z, asin_short, COUNT(asin_short));
  h.asin = s_fma(p, mul(p, h.s, z), q, h.s);
  return h;
}

static sval asin_f64(struct sprog *p, sval x, bool full) {
  struct half h = asin_half(p, mag(p, x), full);
  sval far = add(p, s_fma(p, h.asin, f64(p, -2), f64(p, HALF_PI)), f64(p, HALF_PI_LO));
  return math_with_sign(p, s_select(p, h.large, far, h.asin), x);
}

static sval acos_f64(struct sprog *p, sval x, bool full) {
  struct half h = asin_half(p, mag(p, x), full);
  sval negative = lt(p, x, f64(p, 0)), twice = add(p, h.asin, h.asin);
  sval far = s_select(p, negative, sub(p, f64(p, PI), sub(p, twice, f64(p, 2 * HALF_PI_LO))), twice);
  sval near = s_select(p, negative, neg(p, h.asin), h.asin);
  near = sub(p, f64(p, HALF_PI), sub(p, near, f64(p, HALF_PI_LO)));
  return s_select(p, h.large, far, near);
}

/* atan s = s + s^3 P(s^2) for |s| <= tan(pi/8), errors 2^-30.5 and 2^-59.1. */
static const double atan_short[] = {-0x1.55554927e292p-2, 0x1.99919604fbc38p-3, -0x1.23b52183bddadp-3,
                                    0x1.b1ec1f15156e7p-4, -0x1.f1ed3d32b869fp-5};
static const double atan_full[] = {-0x1.555555555553dp-2, 0x1.999999999586ap-3,  -0x1.24924922ad55fp-3,
                                   0x1.c71c70e60a0d4p-4,  -0x1.745cf8dbc1904p-4, 0x1.3b1119115c166p-4,
                                   -0x1.10ebb7e356732p-4, 0x1.df0f47743b049p-5,  -0x1.9cd2b596ed82fp-5,
                                   0x1.37d5ab35c6637p-5,  -0x1.256a9f15f9f4cp-6};

/* atan(y/x) for y, x >= 0, not both zero or inf, whose sum does not overflow. */
static sval atan_quotient(struct sprog *p, sval y, sval x, bool full) {
  sval middle = lt(p, mul(p, x, f64(p, 0x1.a827999fcef32p-2)), y);
  sval steep = lt(p, mul(p, x, f64(p, 0x1.3504f333f9de6p+1)), y);
  sval num = s_select(p, steep, neg(p, x), s_select(p, middle, sub(p, y, x), y));
  sval den = s_select(p, steep, y, s_select(p, middle, add(p, y, x), x));
  sval base = s_select(p, steep, f64(p, HALF_PI), s_select(p, middle, f64(p, HALF_PI / 2), f64(p, 0)));
  sval base_lo =
      s_select(p, steep, f64(p, HALF_PI_LO), s_select(p, middle, f64(p, HALF_PI_LO / 2), f64(p, 0)));
  sval s = quo(p, num, den), z = mul(p, s, s);
  sval q =
      full ? math_poly(p, z, atan_full, COUNT(atan_full)) : math_poly(p, z, atan_short, COUNT(atan_short));
  return add(p, base, add(p, s_fma(p, mul(p, s, z), q, s), base_lo));
}

static sval atan_f64(struct sprog *p, sval x, bool full) {
  sval a = math_clamp(p, mag(p, x), -INFINITY, 0x1p100);
  return math_with_sign(p, atan_quotient(p, a, f64(p, 1), full), x);
}

static sval atan2_f64(struct sprog *p, sval y, sval x, bool full) {
  sval b = mag(p, y), a = mag(p, x), one = f64(p, 1), zero = f64(p, 0), inf = f64(p, INFINITY);
  sval infinite = and(p, eq(p, a, inf), eq(p, b, inf));
  sval ay = s_select(p, infinite, one, b), ax = s_select(p, infinite, one, a);
  ax = s_select(p, and(p, eq(p, a, zero), eq(p, b, zero)), one, ax);
  if (full) { /* keep y+x finite */
    sval big = or (p, lt(p, f64(p, 0x1p1021), a), lt(p, f64(p, 0x1p1021), b));
    sval scale = s_select(p, big, f64(p, 0.25), one);
    ay = mul(p, ay, scale);
    ax = mul(p, ax, scale);
  }
  sval r = atan_quotient(p, ay, ax, full);
  sval left = lt(p, s_bitcast(p, DT_I64, x), i64(p, 0));
  r = s_select(p, left, sub(p, f64(p, PI), sub(p, r, f64(p, 2 * HALF_PI_LO))), r);
  return math_with_sign(p, r, y);
}

sval m_asin(struct sprog *p, sval x) { return math_wide(p, x, asin_f64); }
sval m_acos(struct sprog *p, sval x) { return math_wide(p, x, acos_f64); }
sval m_atan(struct sprog *p, sval x) { return math_wide(p, x, atan_f64); }
sval m_atan2(struct sprog *p, sval y, sval x) { return math_wide2(p, y, x, atan2_f64); }

/* SPDX-License-Identifier: Apache-2.0 */
/* pow, cbrt, hypot. */
#include "ir/scalar/math.h"

#define COUNT(a)      ((int)(sizeof(a) / sizeof *(a)))
#define LOG2E_HI      0x1.71547652b82fep+0
#define LOG2E_LO      0x1.777d0ffda0d24p-56
#define TWO_THIRDS_HI 0x1.5555555555555p-1
#define TWO_THIRDS_LO 0x1.5555555555555p-55

/* hi + lo, |lo| below half an ulp of hi or a little more. */
struct log_pair {
  sval hi, lo;
};

/* The sum of a and b where |a| >= |b| or a = 0 (Dekker), and `low`. */
static struct log_pair pair_add(struct sprog *p, sval a, sval b, sval low) {
  sval hi = add(p, a, b);
  return (struct log_pair){hi, add(p, add(p, sub(p, a, hi), b), low)};
}

static struct log_pair pair_mul(struct sprog *p, struct log_pair a, struct log_pair b) {
  sval hi = mul(p, a.hi, b.hi), lo = s_fma(p, a.hi, b.hi, neg(p, hi));
  lo = s_fma(p, a.hi, b.lo, lo);
  return (struct log_pair){hi, s_fma(p, a.lo, b.hi, lo)};
}

/* (2 atanh(s) - 2s - 2/3 s^3) / s^5 in s^2, error of the logarithm 2^-72. */
static const double log_tail[] = {0x1.9999999999996p-2, 0x1.2492492492f51p-2, 0x1.c71c71c59698fp-3,
                                  0x1.745d18295136p-3,  0x1.3b1364cad2d8cp-3, 0x1.11206ef00cc03p-3,
                                  0x1.de3d7ab5217ddp-4, 0x1.eac5684562cdbp-4};

/* log2 of finite x > 0 to about 65 bits, relative. */
static struct log_pair log2_pair(struct sprog *p, sval x) {
  struct math_split v = math_split(p, x, true);
  sval two = f64(p, 2), d = add(p, v.f, two), d_lo = sub(p, v.f, sub(p, d, two));
  sval over = quo(p, f64(p, 1), d);
  struct log_pair s;
  s.hi = mul(p, v.f, over);
  s.lo = s_fma(p, neg(p, s.hi), d, v.f);
  s.lo = mul(p, s_fma(p, neg(p, s.hi), d_lo, s.lo), over);
  struct log_pair z = pair_mul(p, s, s);
  sval tail = mul(p, z.hi, math_poly(p, z.hi, log_tail, COUNT(log_tail)));
  struct log_pair q = pair_add(p, f64(p, TWO_THIRDS_HI), tail, f64(p, TWO_THIRDS_LO));
  struct log_pair u = pair_mul(p, pair_mul(p, s, z), q);
  struct log_pair l = pair_add(p, add(p, s.hi, s.hi), u.hi, add(p, u.lo, add(p, s.lo, s.lo)));
  struct log_pair e = {f64(p, LOG2E_HI), f64(p, LOG2E_LO)};
  struct log_pair m = pair_mul(p, l, e);
  return pair_add(p, v.k, m.hi, m.lo);
}

/* |x|^y by 2^(y log2 |x|), for finite x > 0. */
static sval pow_positive(struct sprog *p, sval a, sval y, bool full) {
  y = math_clamp(p, y, -0x1p80, 0x1p80);
  if (!full) {
    struct math_split v = math_split(p, a, false), m = {-1, v.f};
    sval l = s_fma(p, math_log_f64(p, m, -1, false), f64(p, LOG2E_HI), v.k);
    return math_exp2_f64(p, mul(p, y, l), -1, false);
  }
  struct log_pair l = log2_pair(p, a);
  sval hi = mul(p, y, l.hi), lo = s_fma(p, y, l.lo, s_fma(p, y, l.hi, neg(p, hi)));
  lo = s_select(p, lt(p, mag(p, hi), f64(p, 2000)), lo, f64(p, 0));
  return math_exp2_f64(p, hi, lo, true);
}

static sval pow_f64(struct sprog *p, sval x, sval y, bool full) {
  sval a = mag(p, x), zero = f64(p, 0), one = f64(p, 1), inf = f64(p, INFINITY), half = f64(p, 0.5);
  sval r = pow_positive(p, a, y, full);
  /* 0 and inf */
  sval is_zero = eq(p, a, zero), extreme = or (p, is_zero, eq(p, a, inf));
  r = s_select(p, extreme, s_select(p, xor(p, is_zero, lt(p, y, zero)), zero, inf), r);
  r = s_select(p, eq(p, x, x), s_select(p, eq(p, y, y), r, y), x);
  /* negative x: the sign follows an odd y, and between integers there is no power */
  sval y2 = mul(p, y, half);
  sval whole = eq(p, s_unary(p, S_FLOOR, y), y);
  sval odd = and(p, whole, s_binary(p, S_NE, s_unary(p, S_FLOOR, y2), y2));
  sval sign = s_select(p, odd, math_sign_bit(p, x), i64(p, 0));
  sval none = and(p, and(p, lt(p, x, zero), s_unary(p, S_NOT, whole)), s_unary(p, S_NOT, extreme));
  r = s_select(p, none, f64(p, NAN), math_float(p, or (p, math_bits(p, r), sign)));
  return s_select(p, or (p, eq(p, y, zero), eq(p, x, one)), one, r);
}

sval m_pow(struct sprog *p, sval x, sval y) { return math_wide2(p, x, y, pow_f64); }

/* m^(-1/3) on [sqrt(1/2), sqrt(2)], error 2^-14.7. */
static const double cbrt_start[] = {0x1.dfe07d2656bfep+0, -0x1.dca0f84fd3a85p+0, 0x1.8fb1b82174ed7p+0,
                                    -0x1.679f2b2f077edp-1, 0x1.06e67de28fb31p-3};

/* |x| = 8^q m with m near [0.35, 2.8]; r = m^(-1/3) by one step of third order, m r^2 by one of Newton's. */
static sval cbrt_f64(struct sprog *p, sval x, bool full) {
  sval a = mag(p, x), third = f64(p, 0x1.5555555555555p-2), one = f64(p, 1), magic = f64(p, MATH_MAGIC_F64);
  struct math_split v = math_split(p, a, full);
  sval t = s_fma(p, v.k, third, magic);
  sval j = s_fma(p, sub(p, t, magic), f64(p, -3), v.k); /* -1, 0, 1 */
  sval below = lt(p, j, f64(p, 0)), above = lt(p, f64(p, 0), j);
  sval m = add(p, v.f, one);
  sval r = math_poly(p, m, cbrt_start, COUNT(cbrt_start));
  m = mul(p, m, s_select(p, below, f64(p, 0.5), s_select(p, above, f64(p, 2), one)));
  r = mul(p, r,
          s_select(p, below, f64(p, 0x1.428a2f98d728bp+0),
                   s_select(p, above, f64(p, 0x1.965fea53d6e3dp-1), one)));
  sval e = s_fma(p, neg(p, m), mul(p, r, mul(p, r, r)), one);
  r = s_fma(p, mul(p, r, e), s_fma(p, e, f64(p, 0x1.c71c71c71c71cp-3), third), r);
  sval rr = mul(p, r, r), y = mul(p, m, rr);
  if (full) y = s_fma(p, s_fma(p, neg(p, mul(p, y, y)), y, m), mul(p, rr, third), y);
  y = math_with_sign(p, mul(p, y, math_pow2(p, t, 0)), x);
  return s_select(p, and(p, lt(p, f64(p, 0), a), lt(p, a, f64(p, INFINITY))), y, x);
}

sval m_cbrt(struct sprog *p, sval x) { return math_wide(p, x, cbrt_f64); }

static sval hypot_f64(struct sprog *p, sval x, sval y, bool full) {
  sval a = mag(p, x), b = mag(p, y), inf = f64(p, INFINITY), back = -1;
  sval infinite = or (p, eq(p, a, inf), eq(p, b, inf));
  if (full) { /* keep the squares in range */
    sval big = s_select(p, lt(p, a, b), b, a), one = f64(p, 1);
    sval high = lt(p, f64(p, 0x1p500), big), low = lt(p, big, f64(p, 0x1p-500));
    sval scale = s_select(p, high, f64(p, 0x1p-600), s_select(p, low, f64(p, 0x1p600), one));
    back = s_select(p, high, f64(p, 0x1p600), s_select(p, low, f64(p, 0x1p-600), one));
    a = mul(p, a, scale);
    b = mul(p, b, scale);
  }
  sval r = root(p, s_fma(p, a, a, mul(p, b, b)));
  if (full) r = mul(p, r, back);
  return s_select(p, infinite, inf, r);
}

sval m_hypot(struct sprog *p, sval x, sval y) { return math_wide2(p, x, y, hypot_f64); }

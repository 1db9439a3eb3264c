/* SPDX-License-Identifier: Apache-2.0 */
/* exp and its kin: x = n ln 2 + r with |r| <= ln2 / 2 (Cody and Waite, "Software Manual for the Elementary
 * Functions", 1980), a polynomial in r, and n put into the exponent. Adding 1.5 * 2^52 rounds x / ln 2 to
 * the integer n and leaves n in the low bits of the sum, so that no conversion is needed. */
#include "ir/scalar/math.h"

#define LOG2E      0x1.71547652b82fep+0
#define LN2_HI     0x1.62e42fefa39efp-1
#define LN2_LO     0x1.abc9e3b39803fp-56
#define LN2_HI_F32 0x1.62e43p-1
#define LN2_LO_F32 -0x1.05c610p-29
#define COUNT(a)   ((int)(sizeof(a) / sizeof *(a)))

/* x to n (as t = n + magic) and r. */
struct exp_reduced {
  sval t, r;
};

static struct exp_reduced reduce(struct sprog *p, sval x, bool full) {
  bool single = s_dtype(p, x) == DT_F32;
  enum dtype d = s_dtype(p, x);
  sval magic = s_const(p, d, single ? MATH_MAGIC_F32 : MATH_MAGIC_F64);
  sval t = s_fma(p, x, s_const(p, d, LOG2E), magic);
  sval n = sub(p, t, magic);
  sval r = s_fma(p, n, s_const(p, d, single ? -LN2_HI_F32 : -LN2_HI), x);
  if (single || full) r = s_fma(p, n, s_const(p, d, single ? -LN2_LO_F32 : -LN2_LO), r);
  return (struct exp_reduced){t, r};
}

/* e^r, error 2^-28.2 for f32 and the short f64, 2^-57.8 full. */
static const double exp_f32[] = {
    1, 1, 0x1.fffffcp-2, 0x1.55548cp-3, 0x1.555858p-5, 0x1.123dep-7, 0x1.6ac746p-10};
static const double exp_short[] = {1,
                                   1,
                                   0x1.fffffb9bccf7dp-2,
                                   0x1.555491679f731p-3,
                                   0x1.5558f09454d77p-5,
                                   0x1.1239d3c18b0b1p-7,
                                   0x1.6a24a7d8bbf82p-10};
static const double exp_full[] = {1,
                                  1,
                                  0x1.000000000000ap-1,
                                  0x1.5555555555503p-3,
                                  0x1.5555555550618p-5,
                                  0x1.1111111124d75p-7,
                                  0x1.6c16c184af9f3p-10,
                                  0x1.a01a013d11585p-13,
                                  0x1.a019989f292ap-16,
                                  0x1.71def4ee26bffp-19,
                                  0x1.28aec8c33b7b6p-22,
                                  0x1.add63498256a7p-26};

sval math_exp_f64(struct sprog *p, sval x, sval extra, int k, bool full) {
  struct exp_reduced v = reduce(p, x, full);
  if (extra >= 0) v.r = add(p, v.r, extra);
  sval y =
      full ? math_poly(p, v.r, exp_full, COUNT(exp_full)) : math_poly(p, v.r, exp_short, COUNT(exp_short));
  return full && k == 0 ? math_scale(p, y, v.t) : mul(p, y, math_pow2(p, v.t, -k));
}

/* Where the result is 0, it is made of exp(0): a product that underflows takes a processor a hundred times as long, and
 * masked scores are such arguments. */
sval m_exp(struct sprog *p, sval x) {
  enum dtype d = s_dtype(p, x);
  bool single = d == DT_F32;
  sval zero = s_const(p, d, 0), none = s_binary(p, S_LT, x, s_const(p, d, single ? -104 : -746)), y;
  x = s_select(p, none, zero, math_clamp(p, x, -INFINITY, single ? 89 : 710));
  if (single) {
    struct exp_reduced v = reduce(p, x, true);
    y = math_scale(p, math_poly(p, v.r, exp_f32, COUNT(exp_f32)), v.t);
  } else {
    y = math_exp_f64(p, x, -1, 0, true);
  }
  return s_select(p, none, zero, y);
}

/* 2^r on [-1/2, 1/2]: errors 2^-26.3, 2^-34.3, 2^-57. */
static const double exp2_f32[] = {
    1, 0x1.62e43p-1, 0x1.ebfb94p-3, 0x1.c6af9ep-5, 0x1.3b681ap-7, 0x1.5ef4e2p-10, 0x1.1794d6p-13};
static const double exp2_short[] = {1,
                                    0x1.62e42ff0e13a9p-1,
                                    0x1.ebfbe0778b7c5p-3,
                                    0x1.c6b08ac0c628ep-5,
                                    0x1.3b29f39a54ac7p-7,
                                    0x1.5d8a85be56a1p-10,
                                    0x1.445c85e48efcbp-13,
                                    0x1.fde63a6635e1bp-17};
static const double exp2_full[] = {1,
                                   0x1.62e42fefa39efp-1,
                                   0x1.ebfbdff82c5b3p-3,
                                   0x1.c6b08d704a26fp-5,
                                   0x1.3b2ab6fb9daf1p-7,
                                   0x1.5d87fe78458dfp-10,
                                   0x1.4309131673949p-13,
                                   0x1.ffcbfe66400c1p-17,
                                   0x1.62bfb4b9888aep-20,
                                   0x1.b52082c06ba1fp-24,
                                   0x1.e63b63395486fp-28,
                                   0x1.f0e8a92cbbccdp-32};

sval math_exp2_f64(struct sprog *p, sval x, sval low, bool full) {
  x = math_clamp(p, x, full ? -1076 : -200, full ? 1025 : 200);
  sval magic = f64(p, MATH_MAGIC_F64), t = add(p, x, magic);
  sval r = sub(p, x, sub(p, t, magic));
  if (low >= 0) r = add(p, r, low);
  if (!full) return mul(p, math_poly(p, r, exp2_short, COUNT(exp2_short)), math_pow2(p, t, 0));
  return math_scale(p, math_poly(p, r, exp2_full, COUNT(exp2_full)), t);
}

sval m_exp2(struct sprog *p, sval x) {
  if (s_dtype(p, x) == DT_F64) return math_exp2_f64(p, x, -1, true);
  x = math_clamp(p, x, -151, 129);
  sval magic = f32(p, MATH_MAGIC_F32), t = add(p, x, magic);
  sval r = sub(p, x, sub(p, t, magic));
  return math_scale(p, math_poly(p, r, exp2_f32, COUNT(exp2_f32)), t);
}

/* expm1(r) = r + r^2 q(r), errors 2^-31.9 and 2^-59.9. */
static const double expm1_short[] = {0x1.00000025ccbb3p-1, 0x1.555554ec363c7p-3,  0x1.5554b156d9569p-5,
                                     0x1.11118da620c2p-7,  0x1.6d71df790a32ap-10, 0x1.a02d869901881p-13};
static const double expm1_full[] = {0x1p-1,
                                    0x1.5555555555559p-3,
                                    0x1.555555555553fp-5,
                                    0x1.111111110f6ep-7,
                                    0x1.6c16c16c1f04dp-10,
                                    0x1.a01a01afd1695p-13,
                                    0x1.a01a017bcfbc3p-16,
                                    0x1.71ddf885966a6p-19,
                                    0x1.27e53620fa256p-22,
                                    0x1.af5e67ff8fd4ap-26,
                                    0x1.1ee88c73eaa56p-29};

/* expm1(x) / 4 in f64, for x in [-40, 710.5]; the sign of zero is lost. */
static sval expm1_quarter(struct sprog *p, sval x, bool full) {
  struct exp_reduced v = reduce(p, x, full);
  sval q = full ? math_poly(p, v.r, expm1_full, COUNT(expm1_full))
                : math_poly(p, v.r, expm1_short, COUNT(expm1_short));
  sval y = s_fma(p, mul(p, v.r, v.r), q, v.r), s = math_pow2(p, v.t, -2);
  return s_fma(p, s, y, sub(p, s, f64(p, 0.25)));
}

/* Below this f(x) = x for every odd function here; taken apart because of -0 and subnormals. */
static sval tiny_is_itself(struct sprog *p, sval x, sval y) {
  return s_select(p, lt(p, mag(p, x), f64(p, 0x1p-60)), x, y);
}

static sval expm1_f64(struct sprog *p, sval x, bool full) {
  sval y = expm1_quarter(p, math_clamp(p, x, -40, 710), full);
  return tiny_is_itself(p, x, mul(p, y, f64(p, 4)));
}

static sval sinh_f64(struct sprog *p, sval x, bool full) {
  sval a = math_clamp(p, mag(p, x), -INFINITY, 710.5);
  sval q = expm1_quarter(p, a, full);
  sval h = add(p, q, q); /* expm1 / 2, which may be inf */
  sval y = add(p, h, quo(p, q, add(p, h, f64(p, 0.5))));
  return tiny_is_itself(p, x, math_with_sign(p, y, x));
}

static sval cosh_f64(struct sprog *p, sval x, bool full) {
  sval a = math_clamp(p, mag(p, x), -INFINITY, 710.5);
  sval q = math_exp_f64(p, a, -1, 2, full); /* exp / 4 */
  return add(p, add(p, q, q), quo(p, f64(p, 0.125), q));
}

static sval tanh_f64(struct sprog *p, sval x, bool full) {
  sval a = math_clamp(p, mag(p, x), -INFINITY, 20);
  sval q = expm1_quarter(p, add(p, a, a), full);
  return tiny_is_itself(p, x, math_with_sign(p, quo(p, q, add(p, q, f64(p, 0.5))), x));
}

sval m_expm1(struct sprog *p, sval x) { return math_wide(p, x, expm1_f64); }
sval m_sinh(struct sprog *p, sval x) { return math_wide(p, x, sinh_f64); }
sval m_cosh(struct sprog *p, sval x) { return math_wide(p, x, cosh_f64); }

/* expm1(2r) / 2 = r + r^2 q(r), error 2^-26.1. */
static const double tanh_f32[] = {0x1.fffffep-1, 0x1.5554aap-1, 0x1.55579ep-2, 0x1.122c88p-3, 0x1.6ab0dp-5};

/* tanh = h / (h+1), h = expm1(2|x|) / 2. */
sval m_tanh(struct sprog *p, sval x) {
  if (s_dtype(p, x) == DT_F64) return tanh_f64(p, x, true);
  sval magic = f32(p, MATH_MAGIC_F32), a = math_clamp(p, mag(p, x), -INFINITY, 10);
  sval t = s_fma(p, a, f32(p, 2 * LOG2E), magic);
  sval r = s_fma(p, sub(p, t, magic), f32(p, -LN2_HI_F32 / 2), a);
  sval y = s_fma(p, mul(p, r, r), math_poly(p, r, tanh_f32, COUNT(tanh_f32)), r);
  sval s = math_float(p, add(p, shl(p, math_bits(p, t), 23), math_bits(p, f32(p, 1))));
  sval h = s_fma(p, s, y, s_fma(p, s, f32(p, 0.5), f32(p, -0.5)));
  sval q = quo(p, h, add(p, h, f32(p, 1)));
  /* For small h the rounding of h+1 would show: h / (h+1) = h - h q. */
  q = s_select(p, lt(p, h, f32(p, 0.4)), s_fma(p, neg(p, h), q, h), q);
  return math_with_sign(p, q, x);
}

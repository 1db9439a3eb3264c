/* SPDX-License-Identifier: Apache-2.0 */
/* sin, cos, tan: |x| = n pi/2 + r with |r| <= pi/4 (a shade more), polynomials in r, and the quadrant n
 * mod 4.
 *
 * Up to 2^38 by Cody and Waite with pi/2 in three parts: n times the first part differs from |x| by a
 * multiple of 2^-53 below 1, so that the first fma is exact. Beyond, by Payne and Hanek ("Radian reduction
 * for trigonometric functions", SIGNUM Newsletter 18, 1983): only the bits of 2/pi that matter modulo 4
 * are multiplied by the mantissa. They are picked by shifting a list of constant words by 16, 8, 4, 2, 1
 * words, because there are no tables here. */
#include "ir/scalar/math.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define LIMIT    0x1p38

/* pi/2 = a sum of three; and 2/pi. */
#define HALF_PI_1   0x1.921fb54442d18p+0
#define HALF_PI_2   0x1.1a62633145c07p-54
#define HALF_PI_3   -0x1.f1976b7ed8fbcp-110
#define TWO_OVER_PI 0x1.45f306dc9c883p-1

/* 2/pi as a binary fraction, after one word of zeros. */
static const uint64_t two_over_pi[] = {0,
                                       0xa2f9836e4e441529,
                                       0xfc2757d1f534ddc0,
                                       0xdb6295993c439041,
                                       0xfe5163abdebbc561,
                                       0xb7246e3a424dd2e0,
                                       0x06492eea09d1921c,
                                       0xfe1deb1cb129a73e,
                                       0xe88235f52ebb4484,
                                       0xe99c7026b45f7e41,
                                       0x3991d639835339f4,
                                       0x9c845f8bbdf9283b,
                                       0x1ff897ffde05980f,
                                       0xef2f118b5a0a6d1f,
                                       0x6d367ecf27cb09b7,
                                       0x4f463f669e5fea2d,
                                       0x7527bac7ebe5f17b,
                                       0x3d0739f78a5292ea,
                                       0x6bfb5fb11f8d5d08,
                                       0x56033046fc7b6bab};

/* t = n + magic, see math_scale. */
struct reduced_angle {
  sval t, r;
};

struct double_double {
  sval hi, lo;
};

/* a + b without error (Knuth). */
static struct double_double two_sum(struct sprog *p, sval a, sval b) {
  sval s = add(p, a, b), v = sub(p, s, a);
  return (struct double_double){s, add(p, sub(p, a, sub(p, s, v)), sub(p, b, v))};
}

/* 53 bits of the words hi, lo from bit `from` of hi on (from >= 11) as an f64 times 2^scale. */
static sval chunk(struct sprog *p, sval hi, sval lo, int from, int scale) {
  int have = 64 - from; /* taken from hi: at most 53 */
  sval bits;
  if (have == 64)
    bits = shr(p, hi, 11);
  else
    bits = or (p, shl(p, and(p, hi, i64(p, (UINT64_C(1) << have) - 1)), 53 - have), shr(p, lo, 11 + have));
  return mul(p, s_convert(p, DT_F64, bits), f64(p, ldexp(1, scale)));
}

/* a in [2^38, inf). short: a holds an f32. */
static struct reduced_angle payne_hanek(struct sprog *p, sval a, bool full) {
  sval magic = f64(p, MATH_MAGIC_F64);
  sval bits = math_bits(p, a);
  /* a = m 2^e with m of 53 (24) bits; the first bit of the list that matters has weight 2 once multiplied
   * by 2^e. */
  sval m = or (p, and(p, bits, i64(p, (UINT64_C(1) << 52) - 1)), i64(p, UINT64_C(1) << 52));
  if (!full) m = shr(p, m, 29);
  sval skip = sub(p, shr(p, bits, 52), i64(p, full ? 1013 : 984));
  sval word = shr(p, skip, 6), by = and(p, skip, i64(p, 63));
  int need = full ? 4 : 3, have = full ? COUNT(two_over_pi) : 5;
  sval w[COUNT(two_over_pi)];
  for (int i = 0; i < have; i++) w[i] = i64(p, two_over_pi[i]);
  for (int step = full ? 16 : 2; step; step /= 2) {
    sval jump = s_binary(p, S_NE, and(p, word, i64(p, (uint64_t)step)), i64(p, 0));
    for (int i = 0; i < need + step - 1; i++)
      if (i + step < have) w[i] = s_select(p, jump, w[i + step], w[i]);
  }
  sval back = sub(p, i64(p, 63), by);
  for (int i = 0; i < need - 1; i++)
    w[i] = or (p, s_binary(p, S_SHL, w[i], by), s_binary(p, S_SHR, shr(p, w[i + 1], 1), back));
  /* The window times m, modulo 4: p0 exact in two parts, what follows it added with its errors. */
  sval x = s_convert(p, DT_F64, m);
  sval c0 = chunk(p, w[0], w[0], 0, -51), c1 = chunk(p, w[0], w[1], 53, -104);
  sval p0 = mul(p, x, c0), low0 = s_fma(p, x, c0, neg(p, p0));
  sval turns = s_unary(p, S_RINT, mul(p, p0, f64(p, 0.25)));
  p0 = s_fma(p, turns, f64(p, -4), p0);
  sval p1 = mul(p, x, c1);
  struct double_double rest = {p1, -1}, sum = {low0, -1};
  if (full) {
    sval c2 = chunk(p, w[1], w[2], 42, -157);
    sval c3 = mul(p, s_convert(p, DT_F64, and(p, w[2], i64(p, (UINT64_C(1) << 33) - 1))), f64(p, 0x1p-190));
    rest.hi = mul(p, x, c2);
    rest.lo = s_fma(p, x, c3, s_fma(p, x, c2, neg(p, rest.hi)));
    sum = two_sum(p, low0, p1);
    sum.lo = add(p, sum.lo, s_fma(p, x, c1, neg(p, p1)));
  }
  sval t = add(p, add(p, p0, sum.hi), magic);
  struct double_double f = {add(p, sub(p, p0, sub(p, t, magic)), sum.hi), rest.hi}; /* exact */
  if (full) {
    /* The parts cancel down to 2^-62 at worst; what is left then is still exact but for the smallest. */
    f = two_sum(p, f.hi, sum.lo);
    struct double_double g = two_sum(p, f.hi, rest.hi);
    f = (struct double_double){g.hi, add(p, g.lo, add(p, f.lo, rest.lo))};
  }
  sval low = s_fma(p, f.lo, f64(p, HALF_PI_1), mul(p, f.hi, f64(p, HALF_PI_2)));
  return (struct reduced_angle){t, s_fma(p, f.hi, f64(p, HALF_PI_1), low)};
}

static struct reduced_angle reduce(struct sprog *p, sval a, bool full) {
  sval magic = f64(p, MATH_MAGIC_F64);
  sval t = s_fma(p, a, f64(p, TWO_OVER_PI), magic), n = sub(p, t, magic);
  sval r = s_fma(p, n, f64(p, -HALF_PI_1), a);
  r = s_fma(p, n, f64(p, -HALF_PI_2), r);
  if (full) r = s_fma(p, n, f64(p, -HALF_PI_3), r);
  struct reduced_angle far = payne_hanek(p, a, full);
  /* inf stays with the first, which makes it NaN */
  sval big = and(p, lt(p, f64(p, LIMIT), a), lt(p, a, f64(p, INFINITY)));
  return (struct reduced_angle){s_select(p, big, far.t, t), s_select(p, big, far.r, r)};
}

/* sin r = r + r^3 P(r^2), errors 2^-28 and 2^-57.8; cos r = 1 - r^2/2 + r^4 P(r^2), errors 2^-33 and
 * 2^-63.8. */
static const double sin_short[] = {-0x1.555545266b13bp-3, 0x1.11073af496155p-7, -0x1.9943ded55199dp-13};
static const double sin_full[] = {-0x1.5555555555548p-3, 0x1.111111110f73p-7,    -0x1.a01a019be9322p-13,
                                  0x1.71de35553d739p-19, -0x1.ae5e4b9430b33p-26, 0x1.5d8b5ac566497p-33};
static const double cos_short[] = {0x1.55554a126bf84p-5, -0x1.6c0c344b91a93p-10, 0x1.99ebc76425bf8p-16};
static const double cos_full[] = {0x1.555555555554bp-5,   -0x1.6c16c16c15017p-10, 0x1.a01a019c8f75bp-16,
                                  -0x1.27e4f7f1db855p-22, 0x1.1ee9dc093ce3ep-29,  -0x1.8fa6a59118d4cp-37};

static sval sin_poly(struct sprog *p, sval r, bool full) {
  sval z = mul(p, r, r);
  sval q = full ? math_poly(p, z, sin_full, COUNT(sin_full)) : math_poly(p, z, sin_short, COUNT(sin_short));
  return s_fma(p, mul(p, r, z), q, r);
}

static sval cos_poly(struct sprog *p, sval r, bool full) {
  sval z = mul(p, r, r);
  sval q = full ? math_poly(p, z, cos_full, COUNT(cos_full)) : math_poly(p, z, cos_short, COUNT(cos_short));
  return s_fma(p, mul(p, z, z), q, s_fma(p, z, f64(p, -0.5), f64(p, 1)));
}

static sval bit(struct sprog *p, sval i, uint64_t which) {
  return s_binary(p, S_NE, and(p, i, i64(p, which)), i64(p, 0));
}

static sval sin_f64(struct sprog *p, sval x, bool full) {
  struct reduced_angle v = reduce(p, mag(p, x), full);
  sval i = math_bits(p, v.t);
  sval y = s_select(p, bit(p, i, 1), cos_poly(p, v.r, full), sin_poly(p, v.r, full));
  sval sign = xor(p, shl(p, and(p, i, i64(p, 2)), 62), math_sign_bit(p, x));
  return math_float(p, xor(p, math_bits(p, y), sign));
}

static sval cos_f64(struct sprog *p, sval x, bool full) {
  struct reduced_angle v = reduce(p, mag(p, x), full);
  sval i = math_bits(p, v.t);
  sval y = s_select(p, bit(p, i, 1), sin_poly(p, v.r, full), cos_poly(p, v.r, full));
  sval sign = shl(p, and(p, add(p, i, i64(p, 1)), i64(p, 2)), 62);
  return math_float(p, xor(p, math_bits(p, y), sign));
}

static sval tan_f64(struct sprog *p, sval x, bool full) {
  struct reduced_angle v = reduce(p, mag(p, x), full);
  sval i = math_bits(p, v.t), odd = bit(p, i, 1);
  sval s = sin_poly(p, v.r, full), c = cos_poly(p, v.r, full);
  sval y = quo(p, s_select(p, odd, c, s), s_select(p, odd, s, c));
  sval sign = xor(p, shl(p, i, 63), math_sign_bit(p, x));
  return math_float(p, xor(p, math_bits(p, y), sign));
}

sval m_sin(struct sprog *p, sval x) { return math_wide(p, x, sin_f64); }
sval m_cos(struct sprog *p, sval x) { return math_wide(p, x, cos_f64); }
sval m_tan(struct sprog *p, sval x) { return math_wide(p, x, tan_f64); }

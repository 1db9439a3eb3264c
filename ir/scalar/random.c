/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers by counter: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy
 * as 1, 2, 3", SC'11), and normals by Box and Muller ("A note on the generation of random normal
 * deviates", 1958). */
#include "ir/scalar/random.h"

#include "ir/scalar/math.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

void random_philox(struct sprog *p, sval counter[4], const sval key[2]) {
  sval m0 = i32(p, 0xd2511f53), m1 = i32(p, 0xcd9e8d57), k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; round++) {
    if (round > 0) {
      k0 = add(p, k0, i32(p, 0x9e3779b9));
      k1 = add(p, k1, i32(p, 0xbb67ae85));
    }
    sval hi0 = s_binary(p, S_MULHI, m0, counter[0]), lo0 = mul(p, m0, counter[0]);
    sval hi1 = s_binary(p, S_MULHI, m1, counter[2]), lo1 = mul(p, m1, counter[2]);
    counter[0] = xor(p, xor(p, hi1, counter[1]), k0);
    counter[1] = lo1;
    counter[2] = xor(p, xor(p, hi0, counter[3]), k1);
    counter[3] = lo0;
  }
}

static sval low(struct sprog *p, sval x) { return s_convert(p, DT_I32, x); }
static sval high(struct sprog *p, sval x) { return s_convert(p, DT_I32, shr(p, x, 32)); }

/* The key is seed xor stream times 2^64 / golden ratio: streams of one seed never share a key. */
static void words(struct sprog *p, sval seed, sval stream, sval step, sval element, sval out[4]) {
  sval mixed = xor(p, seed, mul(p, stream, i64(p, UINT64_C(0x9e3779b97f4a7c15))));
  const sval key[2] = {low(p, mixed), high(p, mixed)};
  out[0] = low(p, element);
  out[1] = high(p, element);
  out[2] = low(p, step);
  out[3] = high(p, step);
  random_philox(p, out, key);
}

/* 53 bits of two words as a number in [0, 1). */
static sval unit_f64(struct sprog *p, sval a, sval b) {
  sval hi = s_convert(p, DT_F64, shr(p, a, 5)), lo = s_convert(p, DT_F64, shr(p, b, 6));
  return mul(p, s_fma(p, hi, f64(p, 0x1p26), lo), f64(p, 0x1p-53));
}

sval m_random_uniform(struct sprog *p, enum dtype d, sval seed, sval stream, sval step, sval element) {
  sval w[4];
  words(p, seed, stream, step, element, w);
  if (d == DT_F64) return unit_f64(p, w[0], w[1]);
  return mul(p, s_convert(p, DT_F32, shr(p, w[0], 8)), f32(p, 0x1p-24));
}

/* sin(pi v) / v and cos(pi v) in v^2 for |v| <= 1/4: errors 2^-25 and 2^-54. */
static const double sin_f32[] = {0x1.921fb6p+1, -0x1.4abc24p+2, 0x1.4680a4p+1, -0x1.331962p-1};
static const double cos_f32[] = {0x1p+0, -0x1.3bd3ccp+2, 0x1.03c1bp+2, -0x1.55b2b6p+0, 0x1.d4f868p-3};
static const double sin_wide[] = {0x1.921fb54442d18p+1,  -0x1.4abbce625bd7ep+2, 0x1.466bc677404d9p+1,
                                  -0x1.32d2ccbeec3d4p-1, 0x1.5077fcd21b90bp-4,  -0x1.e2b6078166653p-8,
                                  0x1.ae176935e3cc4p-12, 0x1.ea6d5bf925bf1p-13};
static const double cos_wide[] = {0x1p+0,
                                  -0x1.3bd3cc9be45dep+2,
                                  0x1.03c1f081b5aaap+2,
                                  -0x1.55d3c7e3c8d5cp+0,
                                  0x1.e1f5068303f1ep-3,
                                  -0x1.a6d1ec3d4731fp-6,
                                  0x1.f9cc15d434fe1p-10,
                                  -0x1.b2586b4946827p-14};

/* cos(2 pi u) for u in [0, 1): u in half turns v, two quadrants to a half turn. */
static sval cos_turn(struct sprog *p, sval u) {
  enum dtype d = s_dtype(p, u);
  bool single = d == DT_F32;
  sval magic = s_const(p, d, single ? MATH_MAGIC_F32 : MATH_MAGIC_F64);
  sval t = s_fma(p, u, s_const(p, d, 4), magic); /* the quadrant in its low bits */
  sval v = s_fma(p, sub(p, t, magic), s_const(p, d, -0.5), add(p, u, u));
  sval z = mul(p, v, v), i = math_bits(p, t);
  sval s = single ? math_poly(p, z, sin_f32, COUNT(sin_f32)) : math_poly(p, z, sin_wide, COUNT(sin_wide));
  sval c = single ? math_poly(p, z, cos_f32, COUNT(cos_f32)) : math_poly(p, z, cos_wide, COUNT(cos_wide));
  sval odd = s_binary(p, S_NE, and(p, i, s_int(p, s_dtype(p, i), 1)), s_int(p, s_dtype(p, i), 0));
  sval y = s_select(p, odd, mul(p, s, v), c);
  sval sign =
      shl(p, and(p, add(p, i, s_int(p, s_dtype(p, i), 1)), s_int(p, s_dtype(p, i), 2)), single ? 30 : 62);
  return math_float(p, xor(p, math_bits(p, y), sign));
}

sval m_random_normal(struct sprog *p, enum dtype d, sval seed, sval stream, sval step, sval element) {
  sval w[4], radius, angle;
  words(p, seed, stream, step, element, w);
  if (d == DT_F64) {
    radius = sub(p, f64(p, 1), unit_f64(p, w[0], w[1]));
    angle = unit_f64(p, w[2], w[3]);
  } else {
    /* 31 bits and a half: never 0, and a tail up to 6.6 */
    sval half = f32(p, 0.5), whole = s_convert(p, DT_F32, shr(p, w[0], 1));
    radius = mul(p, add(p, whole, half), f32(p, 0x1p-31));
    angle = mul(p, s_convert(p, DT_F32, shr(p, w[1], 8)), f32(p, 0x1p-24));
  }
  sval r = root(p, mag(p, mul(p, m_log(p, radius), s_const(p, d, -2))));
  return mul(p, r, cos_turn(p, angle));
}

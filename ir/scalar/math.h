/* SPDX-License-Identifier: Apache-2.0 */
/* Shorthand for the math families (math*.c, random.c): one primitive each, and the steps they share.
 *
 * Polynomials are minimax fits (Remez exchange, relative error), their coefficients rounded one after
 * another with a refit of the rest. Where f32 has no body of its own it is converted to f64, goes through
 * the same code with shorter polynomials (`full` = false), and is rounded once at the end. */
#ifndef DGC_IR_SCALAR_MATH_H
#define DGC_IR_SCALAR_MATH_H

#include "ir/scalar/scalar.h"

#include <math.h>

static inline sval add(struct sprog *p, sval a, sval b) { return s_binary(p, S_ADD, a, b); }
static inline sval sub(struct sprog *p, sval a, sval b) { return s_binary(p, S_SUB, a, b); }
static inline sval mul(struct sprog *p, sval a, sval b) { return s_binary(p, S_MUL, a, b); }
static inline sval quo(struct sprog *p, sval a, sval b) { return s_binary(p, S_DIV, a, b); }
static inline sval neg(struct sprog *p, sval a) { return s_unary(p, S_NEG, a); }
static inline sval mag(struct sprog *p, sval a) { return s_unary(p, S_ABS, a); }
static inline sval root(struct sprog *p, sval a) { return s_unary(p, S_SQRT, a); }
static inline sval lt(struct sprog *p, sval a, sval b) { return s_binary(p, S_LT, a, b); }
static inline sval le(struct sprog *p, sval a, sval b) { return s_binary(p, S_LE, a, b); }
static inline sval eq(struct sprog *p, sval a, sval b) { return s_binary(p, S_EQ, a, b); }
static inline sval and (struct sprog * p, sval a, sval b) { return s_binary(p, S_AND, a, b); }
static inline sval or (struct sprog * p, sval a, sval b) { return s_binary(p, S_OR, a, b); }
static inline sval xor (struct sprog * p, sval a, sval b) {
  return s_binary(p, S_XOR, a, b);
} static inline sval shl(struct sprog *p, sval a, int n) {
  return s_binary(p, S_SHL, a, s_int(p, s_dtype(p, a), n));
}
static inline sval shr(struct sprog *p, sval a, int n) {
  return s_binary(p, S_SHR, a, s_int(p, s_dtype(p, a), n));
}
static inline sval sar(struct sprog *p, sval a, int n) {
  return s_binary(p, S_SAR, a, s_int(p, s_dtype(p, a), n));
}
static inline sval f64(struct sprog *p, double value) { return s_const(p, DT_F64, value); }
static inline sval f32(struct sprog *p, double value) { return s_const(p, DT_F32, value); }
static inline sval i64(struct sprog *p, uint64_t bits) { return s_bits(p, DT_I64, bits); }
static inline sval i32(struct sprog *p, uint32_t bits) { return s_bits(p, DT_I32, bits); }

/* The bits of a float as an integer, and back. */
sval math_bits(struct sprog *p, sval x);
sval math_float(struct sprog *p, sval bits);
/* c[0] + c[1] x + ... + c[n-1] x^(n-1), by Horner's rule. */
sval math_poly(struct sprog *p, sval x, const double *c, int n);
/* x kept in [lo, hi]; NaN stays. One machine instruction for each bound that is given: pass -INFINITY or
 * INFINITY for none. */
sval math_clamp(struct sprog *p, sval x, double lo, double hi);
/* The magnitude of x, a number without sign bit, with the sign bit of `sign`. */
sval math_with_sign(struct sprog *p, sval x, sval sign);
/* The sign bit of x alone, as an integer. */
sval math_sign_bit(struct sprog *p, sval x);
/* Runs `f` in f64, full for f64, short for f32. */
sval math_wide(struct sprog *p, sval x, sval (*f)(struct sprog *, sval, bool full));
sval math_wide2(struct sprog *p, sval x, sval y, sval (*f)(struct sprog *, sval, sval, bool full));

/* y 2^n, where t = n + 1.5 * 2^(mantissa bits) holds the integer n in its low bits. Twice rounded never:
 * the first of two factors keeps y normal. For |n| up to twice the exponent range. */
sval math_scale(struct sprog *p, sval y, sval t);
/* The f64 2^(n+k), t as in math_scale, for results in the normal range. */
sval math_pow2(struct sprog *p, sval t, int k);
#define MATH_MAGIC_F32 0x1.8p23
#define MATH_MAGIC_F64 0x1.8p52

/* e^(x+extra) / 2^k in f64 for x in [-746, 710.5] (k = 0, full) or where the result is normal; extra < 0
 * means none. */
sval math_exp_f64(struct sprog *p, sval x, sval extra, int k, bool full);
/* 2^x in f64 for x + low, |low| below half an ulp of 1, low < 0 none; any x. */
sval math_exp2_f64(struct sprog *p, sval x, sval low, bool full);

/* x = 2^k (1+f) in f64, sqrt(1/2) <= 1+f < sqrt(2), for finite x > 0; k as a float. */
struct math_split {
  sval k, f;
};
struct math_split math_split(struct sprog *p, sval x, bool subnormals);
/* log(2^k (1+f)) + c in f64 (Tang-style atanh series); c < 0 means none, k < 0 means 0. */
sval math_log_f64(struct sprog *p, struct math_split s, sval c, bool full);

#endif

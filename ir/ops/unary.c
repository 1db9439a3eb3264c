/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops of one operand: a body for one element, and how a gradient flows back.
 *
 * In a body, `x` is the operand; in a gradient, `x` is the operand's node, `y` the result's, `dy` its gradient. */
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

#define K(v)          s_const(p, s_dtype(p, x), (v))
#define BIN(op, a, b) s_binary(p, S_##op, (a), (b))
#define UN(op, a)     s_unary(p, S_##op, (a))

#define FILL(v) build_fill(c->g, &y->type, (v))
/* In this order, whatever the compiler: see ir/graph/build.h. */
#define TWO(op, a, b) (grad_hold(c, (a)), grad_hold(c, (b)), grad_build(c, OP_##op, 2))
#define MUL(a, b)     TWO(mul, a, b)
#define DIV(a, b)     TWO(div, a, b)
#define ADD(a, b)     TWO(add, a, b)
#define SUB(a, b)     TWO(sub, a, b)
#define F(op, a)      build1(c->g, OP_##op, (a))

#define BODY(name_, expr)                                                             \
  static sval name_##_scalar(struct sprog *p, const struct node *n, const sval *in) { \
    (void)n, (void)p;                                                                 \
    sval x = in[0];                                                                   \
    return expr;                                                                      \
  }
#define GRAD(name_, expr)                                                           \
  static void name_##_grad(struct grad *c, const struct node *n, struct node *dy) { \
    struct node *x = n->inputs[0], *y = (struct node *)(uintptr_t)n;                \
    (void)x, (void)y;                                                               \
    grad_add(c, n, 0, expr);                                                        \
  }

/* A smooth function: body, gradient. */
#define SMOOTH(name_, dtypes_, domain_, body, gradient)        \
  BODY(name_, body)                                            \
  GRAD(name_, gradient)                                        \
  const struct op_info op_##name_ = {.name = #name_,           \
                                     .kind = KIND_ELEMENTWISE, \
                                     .dtypes = dtypes_,        \
                                     .min_inputs = 1,          \
                                     .max_inputs = 1,          \
                                     .roles = {"x"},           \
                                     .domain = domain_,        \
                                     .scalar = name_##_scalar, \
                                     .grad = name_##_grad};
/* A step function: no gradient flows back. */
#define STEP(name_, dtypes_, domain_, body)                    \
  BODY(name_, body)                                            \
  const struct op_info op_##name_ = {.name = #name_,           \
                                     .kind = KIND_ELEMENTWISE, \
                                     .dtypes = dtypes_,        \
                                     .traits = OP_NO_GRADIENT, \
                                     .min_inputs = 1,          \
                                     .max_inputs = 1,          \
                                     .roles = {"x"},           \
                                     .domain = domain_,        \
                                     .scalar = name_##_scalar};

/* ---- the value itself ---- */

static struct node *identity_fold(struct graph *g, const struct node *n) {
  (void)g;
  return n->inputs[0];
}
BODY(identity, x)
GRAD(identity, dy)
const struct op_info op_identity = {.name = "identity",
                                    .kind = KIND_ELEMENTWISE,
                                    .dtypes = DTYPE_ANY,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .traits = OP_MOVES,
                                    .linear = 1,
                                    .roles = {"x"},
                                    .domain = DOMAIN_ANY,
                                    .fold = identity_fold,
                                    .scalar = identity_scalar,
                                    .grad = identity_grad,
                                    .view = view_of_all};

BODY(stop_gradient, x)
const struct op_info op_stop_gradient = {.name = "stop_gradient",
                                         .kind = KIND_ELEMENTWISE,
                                         .dtypes = DTYPE_ANY,
                                         .traits = OP_NO_GRADIENT,
                                         .min_inputs = 1,
                                         .max_inputs = 1,
                                         .roles = {"x"},
                                         .domain = DOMAIN_ANY,
                                         .scalar = stop_gradient_scalar,
                                         .view = view_of_all};

/* What is widened and stored again is what it was. */
static struct node *cast_fold(struct graph *g, const struct node *n) {
  struct node *x = n->inputs[0];
  (void)g;
  if (x->type.dtype == n->type.dtype) return x;
  bool again =
      dtype_is_narrow(n->type.dtype) && node_is(x, OP_cast) && x->inputs[0]->type.dtype == n->type.dtype;
  return again ? x->inputs[0] : NULL;
}
static bool cast_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type;
  *out = type_with_dtype(*x, out->dtype);
  bool narrow = dtype_is_narrow(x->dtype), narrows = dtype_is_narrow(out->dtype);
  if ((!narrow && !narrows) || x->dtype == DT_F32 || out->dtype == DT_F32) return true;
  *why = arena_printf(a, "%s is made of f32 and becomes f32: %s", dtype_name(narrows ? out->dtype : x->dtype),
                      type_text(a, x));
  return false;
}
static sval cast_scalar(struct sprog *p, const struct node *n, const sval *in) {
  return s_convert(p, n->type.dtype, in[0]);
}
static void cast_grad(struct grad *c, const struct node *n, struct node *dy) {
  enum dtype from = n->inputs[0]->type.dtype;
  if (dtype_is_float(from) && dtype_is_float(n->type.dtype)) grad_add(c, n, 0, build_cast(c->g, dy, from));
}
const struct op_info op_cast = {.name = "cast",
                                .kind = KIND_ELEMENTWISE,
                                .dtypes = DTYPE_CUSTOM,
                                .traits = OP_TYPED,
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .roles = {"x"},
                                .domain = DOMAIN_ANY,
                                .infer = cast_infer,
                                .fold = cast_fold,
                                .scalar = cast_scalar,
                                .grad = cast_grad};

static struct node *neg_fold(struct graph *g, const struct node *n) {
  (void)g;
  return node_is(n->inputs[0], OP_neg) ? n->inputs[0]->inputs[0] : NULL;
}
BODY(neg, UN(NEG, x))
GRAD(neg, F(neg, dy))
const struct op_info op_neg = {.name = "neg",
                               .kind = KIND_ELEMENTWISE,
                               .dtypes = DTYPE_NUMBER,
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .linear = 1,
                               .roles = {"x"},
                               .domain = DOMAIN_ANY,
                               .fold = neg_fold,
                               .scalar = neg_scalar,
                               .grad = neg_grad};

/* ---- rounding and sign ---- */

SMOOTH(abs, DTYPE_NUMBER, DOMAIN_NONZERO, s_dtype(p, x) == DT_U8 ? x : UN(ABS, x), MUL(dy, F(sign, x)))
STEP(sign, DTYPE_NUMBER, DOMAIN_NONZERO,
     s_select(p, BIN(LT, K(0), x), K(1),
              s_dtype(p, x) == DT_U8 ? x : s_select(p, BIN(LT, x, K(0)), K(-1), x)))
STEP(floor, DTYPE_FLOAT, DOMAIN_ANY, UN(FLOOR, x))
STEP(ceil, DTYPE_FLOAT, DOMAIN_ANY, UN(CEIL, x))
STEP(round, DTYPE_FLOAT, DOMAIN_ANY, UN(RINT, x))
STEP(trunc, DTYPE_FLOAT, DOMAIN_ANY, UN(TRUNC, x))

/* Rounding to a narrow type, to the nearest value of it, ties to even: bits of an f32 are cut off, and a carry out of
 * the fraction counts the exponent up, to infinity in the end. A NaN could lose its last bits so: it gets one that
 * stays. Where a certificate computes all floats in f64, by way of f32. As ir/scalar/eval.c converts. */
#define I(bits) s_bits(p, DT_I32, (bits))

/* `bits` without the lowest `cut`. */
static sval round_off(struct sprog *p, sval x, sval bits, int cut) {
  uint32_t rest = (1u << cut) - 1;
  sval odd = BIN(AND, BIN(SHR, bits, I((uint32_t)cut)), I(1));
  sval up = BIN(ADD, bits, BIN(ADD, odd, I(rest >> 1)));
  return BIN(AND, s_select(p, BIN(NE, x, x), BIN(OR, bits, I(0x400000)), up), I(~rest));
}

/* bfloat16 is the upper half of an f32. A subnormal number is zero, as it is to the units that multiply bfloat16
 * (AVX512_BF16, AMX). */
static sval near_bf16(struct sprog *p, sval x, sval bits) {
  sval normal = BIN(NE, BIN(AND, bits, I(0x7f800000)), I(0));
  return s_select(p, normal, round_off(p, x, bits, 16), BIN(AND, bits, I(0x80000000)));
}

/* binary16 has 10 bits of fraction, and is infinite from 2^16 on. Its subnormal numbers, the multiples of 2^-24 below
 * 2^-14, are those that a sum with 0.5 keeps of an f32. */
static sval near_f16(struct sprog *p, sval x, sval bits) {
  sval sign = BIN(AND, bits, I(0x80000000)), size = BIN(AND, bits, I(0x7fffffff)),
       half = s_bits(p, DT_F32, 0x3f000000);
  sval small = BIN(SUB, BIN(ADD, s_bitcast(p, DT_F32, size), half), half);
  sval up = round_off(p, x, size, 13);
  sval huge = BIN(AND, BIN(LE, I(0x47800000), up), BIN(EQ, x, x));
  sval large = s_select(p, huge, I(0x7f800000), up);
  return BIN(OR, sign, s_select(p, BIN(LT, size, I(0x38800000)), s_bitcast(p, DT_I32, small), large));
}

static sval narrow_scalar(struct sprog *p, const struct node *n, const sval *in) {
  sval x = s_convert(p, DT_F32, in[0]), bits = s_bitcast(p, DT_I32, x);
  sval near = op_of(n)->narrow == DT_F16 ? near_f16(p, x, bits) : near_bf16(p, x, bits);
  return s_convert(p, s_dtype(p, in[0]), s_bitcast(p, DT_F32, near));
}
#undef I

/* Once is enough, and of a variable that holds nothing else none; and what is only moved or repeated is rounded
 * before, where it is fewer elements, and where a product can take the transpose upon itself. */
static struct node *narrow_fold(struct graph *g, const struct node *n) {
  struct node *x = n->inputs[0];
  if (x->op == n->op || (x->op == OP_variable && node_storage(x) == op_of(n)->narrow)) return x;
  if (!node_is(x, OP_transpose) && !node_is(x, OP_reshape) && !node_is(x, OP_broadcast)) return NULL;
  struct node *near = build1(g, n->op, x->inputs[0]);
  return build(g, x->op, 1, &near, x->nattrs, x->attrs, &x->type);
}
/* Straight through: the slope of the steps is 0 nearly everywhere, and would stop all learning. */
GRAD(narrow, dy)

#define NARROW(name_, dtype_)                                  \
  const struct op_info op_##name_ = {.name = #name_,           \
                                     .kind = KIND_ELEMENTWISE, \
                                     .dtypes = DTYPE_SINGLE,   \
                                     .min_inputs = 1,          \
                                     .max_inputs = 1,          \
                                     .roles = {"x"},           \
                                     .narrow = (dtype_),       \
                                     .domain = DOMAIN_ANY,     \
                                     .fold = narrow_fold,      \
                                     .scalar = narrow_scalar,  \
                                     .grad = narrow_grad};
NARROW(round_bf16, DT_BF16)
NARROW(round_f16, DT_F16)

/* ---- powers and roots ---- */

SMOOTH(square, DTYPE_NUMBER, DOMAIN_ANY, BIN(MUL, x, x), MUL(dy, MUL(FILL(2), x)))
SMOOTH(sqrt, DTYPE_FLOAT, DOMAIN_POSITIVE, UN(SQRT, x), DIV(MUL(FILL(0.5), dy), y))
SMOOTH(rsqrt, DTYPE_FLOAT, DOMAIN_POSITIVE, BIN(DIV, K(1), UN(SQRT, x)), MUL(MUL(FILL(-0.5), dy), DIV(y, x)))
SMOOTH(cbrt, DTYPE_FLOAT, DOMAIN_NONZERO, m_cbrt(p, x), DIV(dy, MUL(FILL(3), F(square, y))))

/* ---- exponentials and logarithms ---- */

#define LN2  0.69314718055994530942
#define LN10 2.30258509299404568402
SMOOTH(exp, DTYPE_FLOAT, DOMAIN_ANY, m_exp(p, x), MUL(dy, y))
SMOOTH(exp2, DTYPE_FLOAT, DOMAIN_ANY, m_exp2(p, x), MUL(dy, MUL(FILL(LN2), y)))
SMOOTH(expm1, DTYPE_FLOAT, DOMAIN_ANY, m_expm1(p, x), MUL(dy, ADD(y, FILL(1))))
SMOOTH(log, DTYPE_FLOAT, DOMAIN_POSITIVE, m_log(p, x), DIV(dy, x))
SMOOTH(log2, DTYPE_FLOAT, DOMAIN_POSITIVE, m_log2(p, x), DIV(dy, MUL(FILL(LN2), x)))
SMOOTH(log10, DTYPE_FLOAT, DOMAIN_POSITIVE, m_log10(p, x), DIV(dy, MUL(FILL(LN10), x)))
SMOOTH(log1p, DTYPE_FLOAT, DOMAIN_POSITIVE, m_log1p(p, x), DIV(dy, ADD(x, FILL(1))))

/* ---- trigonometry ---- */

SMOOTH(sin, DTYPE_FLOAT, DOMAIN_ANY, m_sin(p, x), MUL(dy, F(cos, x)))
SMOOTH(cos, DTYPE_FLOAT, DOMAIN_ANY, m_cos(p, x), MUL(dy, F(neg, F(sin, x))))
SMOOTH(tan, DTYPE_FLOAT, DOMAIN_UNIT, m_tan(p, x), MUL(dy, ADD(F(square, y), FILL(1))))
SMOOTH(asin, DTYPE_FLOAT, DOMAIN_UNIT, m_asin(p, x), DIV(dy, F(sqrt, SUB(FILL(1), F(square, x)))))
SMOOTH(acos, DTYPE_FLOAT, DOMAIN_UNIT, m_acos(p, x), F(neg, DIV(dy, F(sqrt, SUB(FILL(1), F(square, x))))))
SMOOTH(atan, DTYPE_FLOAT, DOMAIN_ANY, m_atan(p, x), DIV(dy, ADD(F(square, x), FILL(1))))
SMOOTH(sinh, DTYPE_FLOAT, DOMAIN_ANY, m_sinh(p, x), MUL(dy, F(cosh, x)))
SMOOTH(cosh, DTYPE_FLOAT, DOMAIN_ANY, m_cosh(p, x), MUL(dy, F(sinh, x)))
SMOOTH(tanh, DTYPE_FLOAT, DOMAIN_ANY, m_tanh(p, x), MUL(dy, SUB(FILL(1), F(square, y))))
SMOOTH(asinh, DTYPE_FLOAT, DOMAIN_ANY, m_asinh(p, x), DIV(dy, F(sqrt, ADD(F(square, x), FILL(1)))))
SMOOTH(acosh, DTYPE_FLOAT, DOMAIN_ABOVE_ONE, m_acosh(p, x), DIV(dy, F(sqrt, SUB(F(square, x), FILL(1)))))
SMOOTH(atanh, DTYPE_FLOAT, DOMAIN_UNIT, m_atanh(p, x), DIV(dy, SUB(FILL(1), F(square, x))))

/* ---- of statistics and networks ---- */

#define TWO_OVER_SQRT_PI 1.12837916709551257390
SMOOTH(erf, DTYPE_FLOAT, DOMAIN_ANY, m_erf(p, x),
       MUL(dy, MUL(FILL(TWO_OVER_SQRT_PI), F(exp, F(neg, F(square, x))))))
SMOOTH(erfc, DTYPE_FLOAT, DOMAIN_ANY, m_erfc(p, x),
       MUL(dy, MUL(FILL(-TWO_OVER_SQRT_PI), F(exp, F(neg, F(square, x))))))
SMOOTH(sigmoid, DTYPE_FLOAT, DOMAIN_ANY, BIN(DIV, K(1), BIN(ADD, K(1), m_exp(p, UN(NEG, x)))),
       MUL(dy, MUL(y, SUB(FILL(1), y))))
/* log(1 + exp(x)), without overflow */
SMOOTH(softplus, DTYPE_FLOAT, DOMAIN_ANY,
       BIN(ADD, BIN(MAX, x, K(0)), m_log1p(p, m_exp(p, UN(NEG, UN(ABS, x))))), MUL(dy, F(sigmoid, x)))

/* ---- tests ---- */

STEP(is_nan, DTYPE_TEST, DOMAIN_ANY, BIN(NE, x, x))
STEP(is_inf, DTYPE_TEST, DOMAIN_ANY, BIN(EQ, UN(ABS, x), K(__builtin_inf())))
STEP(is_finite, DTYPE_TEST, DOMAIN_ANY, BIN(LT, UN(ABS, x), K(__builtin_inf())))
STEP(not, DTYPE_BOOL, DOMAIN_ANY, UN(NOT, x))

/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies for one element, each primitive an operation on all elements; and elementwise ops that need no body. */
#include "hlo/rules.h"

#include <assert.h>

/* a*b+c rounded once: the product of two f32 is exact in f64. For f64 StableHLO has no such operation, so it is rounded
 * twice, but for c = -(a*b): see rest_of_product. */
static struct hlo_value fma_of(struct hlo *h, const struct hlo_value *in) {
  bool single = in[0].type.dtype == DT_F32;
  struct hlo_value x[3];
  for (int i = 0; i < 3; i++) x[i] = hlo_convert(h, DT_F64, in[i]);
  struct hlo_value y = hlo_binary(h, "add", hlo_binary(h, "multiply", x[0], x[1]), x[2]);
  return single ? hlo_convert(h, DT_F32, y) : y;
}

static struct hlo_value bits_as(struct hlo *h, enum dtype d, struct hlo_value x) {
  struct type t = type_with_dtype(x.type, d);
  return hlo_op(h, "bitcast_convert", &t, 1, &x, NULL, NULL);
}

/* An f64 as two numbers of half as many bits, whose products are exact. */
struct number_halves {
  struct hlo_value high, low;
};
static struct number_halves halves_of(struct hlo *h, struct hlo_value x) {
  struct type bits = type_with_dtype(x.type, DT_I64);
  struct hlo_value mask = hlo_integer(h, &bits, -((int64_t)1 << 27));
  struct hlo_value high = bits_as(h, DT_F64, hlo_binary(h, "and", bits_as(h, DT_I64, x), mask));
  return (struct number_halves){high, hlo_binary(h, "subtract", x, high)};
}

/* What rounding has taken from the product y of two f64 (T. J. Dekker, "A floating-point technique for extending the
 * available precision", Numer. Math. 18, 1971). */
static struct hlo_value rest_of_product(struct hlo *h, struct hlo_value a, struct hlo_value b,
                                        struct hlo_value y) {
  struct number_halves p = halves_of(h, a), q = halves_of(h, b);
  struct hlo_value rest = hlo_binary(h, "subtract", hlo_binary(h, "multiply", p.high, q.high), y);
  rest = hlo_binary(h, "add", rest, hlo_binary(h, "multiply", p.high, q.low));
  rest = hlo_binary(h, "add", rest, hlo_binary(h, "multiply", p.low, q.high));
  return hlo_binary(h, "add", rest, hlo_binary(h, "multiply", p.low, q.low));
}

/* The product that a*b+c takes from a*b, for f64, or -1. */
static int product_taken(const struct sprog *p, const struct sinst *i) {
  const struct sinst *c = &p->inst[i->c];
  if (i->op != S_FMA || i->dtype != DT_F64 || c->op != S_NEG) return -1;
  const struct sinst *y = &p->inst[c->a];
  return y->op == S_MUL && y->a == i->a && y->b == i->b ? c->a : -1;
}

/* The high half of the unsigned product of 32 bits by 32: that of 64 bits has room for all of it. */
static struct hlo_value high_half(struct hlo *h, struct hlo_value a, struct hlo_value b) {
  struct type wide = type_with_dtype(a.type, DT_I64);
  struct hlo_value mask = hlo_integer(h, &wide, UINT32_MAX);
  struct hlo_value x = hlo_binary(h, "and", hlo_convert(h, DT_I64, a), mask);
  struct hlo_value y = hlo_binary(h, "and", hlo_convert(h, DT_I64, b), mask);
  struct hlo_value product = hlo_binary(h, "multiply", x, y);
  return hlo_convert(h, DT_I32, hlo_binary(h, "shift_right_logical", product, hlo_integer(h, &wide, 32)));
}

/* Towards zero: down what is positive, up what is not. */
static struct hlo_value truncated(struct hlo *h, struct hlo_value x) {
  struct hlo_value below = hlo_compare(h, "LT", x, hlo_number(h, &x.type, 0));
  return hlo_select(h, below, hlo_unary(h, "ceil", x), hlo_unary(h, "floor", x));
}

static struct hlo_value primitive(struct hlo *h, const struct sinst *i, const struct hlo_value *in) {
  switch ((enum sop)i->op) {
  case S_ADD: return hlo_binary(h, "add", in[0], in[1]);
  case S_SUB: return hlo_binary(h, "subtract", in[0], in[1]);
  case S_MUL: return hlo_binary(h, "multiply", in[0], in[1]);
  case S_DIV: return hlo_divide(h, false, in[0], in[1]);
  case S_REM: return hlo_divide(h, true, in[0], in[1]);
  case S_FMA: return fma_of(h, in);
  case S_NEG: return hlo_unary(h, "negate", in[0]);
  case S_ABS: return hlo_unary(h, "abs", in[0]);
  case S_SQRT: return hlo_unary(h, "sqrt", in[0]);
  case S_FLOOR: return hlo_unary(h, "floor", in[0]);
  case S_CEIL: return hlo_unary(h, "ceil", in[0]);
  case S_TRUNC: return truncated(h, in[0]);
  case S_RINT: return hlo_unary(h, "round_nearest_even", in[0]);
  case S_MIN: return hlo_binary(h, "minimum", in[0], in[1]);
  case S_MAX: return hlo_binary(h, "maximum", in[0], in[1]);
  case S_EQ: return hlo_compare(h, "EQ", in[0], in[1]);
  case S_NE: return hlo_compare(h, "NE", in[0], in[1]);
  case S_LT: return hlo_compare(h, "LT", in[0], in[1]);
  case S_LE: return hlo_compare(h, "LE", in[0], in[1]);
  case S_AND: return hlo_binary(h, "and", in[0], in[1]);
  case S_OR: return hlo_binary(h, "or", in[0], in[1]);
  case S_XOR: return hlo_binary(h, "xor", in[0], in[1]);
  case S_NOT: return hlo_unary(h, "not", in[0]);
  case S_SHL: return hlo_binary(h, "shift_left", in[0], in[1]);
  case S_SHR: return hlo_binary(h, "shift_right_logical", in[0], in[1]);
  case S_SAR: return hlo_binary(h, "shift_right_arithmetic", in[0], in[1]);
  case S_MULHI: return high_half(h, in[0], in[1]);
  case S_SELECT: return hlo_select(h, in[0], in[1], in[2]);
  case S_CONVERT: return hlo_convert_all(h, (enum dtype)i->dtype, in[0]);
  case S_BITCAST: return bits_as(h, (enum dtype)i->dtype, in[0]);
  case S_CONST:
  case S_ARG:
  case S_INDEX: /* kernels have these, bodies of ops do not */
  case S_PARAM: break;
  }
  assert(!"no primitive of a body");
  return in[0];
}

/* The values that the result needs. */
static uint8_t *needed(struct arena *a, const struct sprog *p, sval result) {
  static const int operands[] = {
#define SOP(constant, name, count, on) count,
#include "ir/scalar/scalar.def"
#undef SOP
  };
  uint8_t *live = arena_new_array(a, (size_t)p->count, uint8_t);
  live[result] = 1;
  for (int v = result; v >= 0; v--) {
    const struct sinst *i = &p->inst[v];
    const uint16_t of[] = {i->a, i->b, i->c};
    for (int k = 0; live[v] && k < operands[i->op]; k++) live[of[k]] = 1;
  }
  return live;
}

/* (x + c) - c, by which bodies round: compilers that add constants up first would make x of it. A sum that a constant
 * is taken from is behind a barrier. */
static uint8_t *kept_apart(struct arena *a, const struct sprog *p) {
  uint8_t *apart = arena_new_array(a, (size_t)p->count, uint8_t);
  for (int v = 0; v < p->count; v++) {
    const struct sinst *i = &p->inst[v];
    bool sum = i->op == S_SUB && (p->inst[i->a].op == S_ADD || p->inst[i->a].op == S_FMA);
    if (sum && dtype_is_float((enum dtype)i->dtype) && p->inst[i->b].op == S_CONST) apart[i->a] = 1;
  }
  return apart;
}

struct hlo_value hlo_program(struct hlo *h, const struct sprog *p, sval result, const struct type *shape,
                             const struct hlo_value *args) {
  struct hlo_value *values = arena_new_array(h->arena, (size_t)p->count, struct hlo_value);
  uint8_t *live = needed(h->arena, p, result), *apart = kept_apart(h->arena, p);
  for (int v = 0; v <= result; v++) {
    const struct sinst *i = &p->inst[v];
    struct type t = type_with_dtype(*shape, (enum dtype)i->dtype);
    int product = product_taken(p, i);
    if (!live[v]) continue;
    if (i->op == S_ARG)
      values[v] = args[i->a];
    else if (product >= 0)
      values[v] = rest_of_product(h, values[i->a], values[i->b], values[product]);
    else if (i->op == S_CONST)
      values[v] = hlo_bits(h, &t, i->bits);
    else
      values[v] = primitive(h, i, (struct hlo_value[]){values[i->a], values[i->b], values[i->c]});
    if (apart[v]) values[v] = hlo_op(h, "optimization_barrier", &t, 1, &values[v], NULL, NULL);
  }
  return values[result];
}

/* ---- ops ---- */

bool hlo_identity(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  (void)h, (void)n;
  *out = in[0];
  return true;
}

/* Nothing is differentiated there any more; what does it all the same sees by the barrier where to stop. */
bool hlo_stop_gradient(struct hlo *h, const struct node *n, const struct hlo_value *in,
                       struct hlo_value *out) {
  (void)n;
  *out = hlo_op(h, "optimization_barrier", &in[0].type, 1, in, NULL, NULL);
  return true;
}

/* StableHLO has none of unsigned integers: of those it is 0 or 1. */
bool hlo_sign(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  (void)n;
  bool plain = in[0].type.dtype != DT_U8;
  *out =
      plain ? hlo_unary(h, "sign", in[0]) : hlo_binary(h, "minimum", in[0], hlo_integer(h, &in[0].type, 1));
  return true;
}

bool hlo_atan(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  (void)n;
  *out = hlo_binary(h, "atan2", in[0], hlo_number(h, &in[0].type, 1));
  return true;
}

/* log(1 + exp(x)), without overflow */
bool hlo_softplus(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  (void)n;
  struct hlo_value small = hlo_unary(h, "negate", hlo_unary(h, "abs", in[0]));
  struct hlo_value rest = hlo_unary(h, "log_plus_one", hlo_unary(h, "exponential", small));
  struct hlo_value zero = hlo_number(h, &in[0].type, 0);
  *out = hlo_binary(h, "add", hlo_binary(h, "maximum", in[0], zero), rest);
  return true;
}

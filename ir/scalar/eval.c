/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's reading of scalar programs: one instruction on numbers, without undefined behaviour.
 *
 * Values travel as bits, zero-extended to 64. Integer arithmetic is done on unsigned numbers of 64 bits
 * and cut to size. */
#include "base/half.h"
#include "ir/scalar/scalar.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

static float f32_of(uint64_t bits) { return f32_of_bits((uint32_t)bits); }
static double f64_of(uint64_t bits) { return f64_of_bits(bits); }

static uint64_t cut(enum dtype d, uint64_t x) {
  switch (d) {
  case DT_I32: return (uint32_t)x;
  case DT_U8: return (uint8_t)x;
  case DT_BOOL: return x != 0;
  case DT_F32:
  case DT_F64:
  case DT_I64:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return x;
}

/* The value of integer bits: i32 sign-extended, u8 and bool not. */
static int64_t widen(enum dtype d, uint64_t x) {
  if (d == DT_I32) return (int64_t)(x & 0x7fffffff) - (int64_t)(x & 0x80000000);
  return (int64_t)x;
}

/* The cases on floats a, b and c, for either type; f ends the names of C's functions for it. */
#define ON_FLOATS(bits, f)                                          \
  case S_ADD: return bits(a + b);                                   \
  case S_SUB: return bits(a - b);                                   \
  case S_MUL: return bits(a * b);                                   \
  case S_DIV: return bits(a / b);                                   \
  case S_REM: return bits(fmod##f(a, b));                           \
  case S_FMA: return bits(fma##f(a, b, c));                         \
  case S_NEG: return bits(-a);                                      \
  case S_ABS: return bits(fabs##f(a));                              \
  case S_SQRT: return bits(sqrt##f(a));                             \
  case S_FLOOR: return bits(floor##f(a));                           \
  case S_CEIL: return bits(ceil##f(a));                             \
  case S_TRUNC: return bits(trunc##f(a));                           \
  case S_RINT: return bits(rint##f(a));                             \
  case S_MIN: return bits(a != a ? a : b != b ? b : a < b ? a : b); \
  case S_MAX: return bits(a != a ? a : b != b ? b : a > b ? a : b); \
  case S_EQ: return a == b;                                         \
  case S_NE: return a != b;                                         \
  case S_LT: return a < b;                                          \
  case S_LE: return a <= b;

INLINE uint64_t eval_f32(enum sop op, float a, float b, float c) {
  switch (op) {
    ON_FLOATS(f32_bits, f)
#define SOP SOP_NOT_ON_FLOATS
#include "ir/scalar/scalar.def"
#undef SOP
    break;
  }
  assert(!"not an operation on floats");
  return 0;
}

INLINE uint64_t eval_f64(enum sop op, double a, double b, double c) {
  switch (op) {
    ON_FLOATS(f64_bits, )
#define SOP SOP_NOT_ON_FLOATS
#include "ir/scalar/scalar.def"
#undef SOP
    break;
  }
  assert(!"not an operation on floats");
  return 0;
}

static uint64_t shift_of(enum dtype d, uint64_t count) { return count & (uint64_t)(8 * dtype_size(d) - 1); }

INLINE uint64_t eval_int(enum sop op, enum dtype d, uint64_t ua, uint64_t ub) {
  int64_t a = widen(d, ua), b = widen(d, ub);
  uint64_t x = (uint64_t)a, y = (uint64_t)b;
  switch (op) {
  case S_ADD: return cut(d, x + y);
  case S_SUB: return cut(d, x - y);
  case S_MUL: return cut(d, x * y);
  case S_DIV: return b == 0 ? 0 : b == -1 ? cut(d, 0 - x) : cut(d, (uint64_t)(a / b));
  case S_REM: return b == 0 || b == -1 ? 0 : cut(d, (uint64_t)(a % b));
  case S_NEG: return cut(d, 0 - x);
  case S_ABS: return cut(d, a < 0 ? 0 - x : x);
  case S_MIN: return a < b ? ua : ub;
  case S_MAX: return a > b ? ua : ub;
  case S_EQ: return a == b;
  case S_NE: return a != b;
  case S_LT: return a < b;
  case S_LE: return a <= b;
  case S_AND: return ua & ub;
  case S_OR: return ua | ub;
  case S_XOR: return ua ^ ub;
  case S_NOT: return !ua;
  case S_SHL: return cut(d, ua << shift_of(d, ub));
  case S_SHR: return ua >> shift_of(d, ub);
  case S_SAR: return cut(d, a < 0 ? ~(~x >> shift_of(d, ub)) : x >> shift_of(d, ub));
  case S_MULHI: return ua * ub >> 32;
#define SOP SOP_NOT_ON_INTEGERS
#include "ir/scalar/scalar.def"
#undef SOP
    break;
  }
  assert(!"not an operation on integers");
  return 0;
}

/* Narrow types: from and to f32 alone. */
static inline uint64_t convert(enum dtype to, enum dtype from, uint64_t a) {
  if (to == from) return a;
  if (to == DT_BF16) return bf16_of_f32(f32_of(a));
  if (from == DT_BF16) return f32_bits(f32_of_bf16((uint16_t)a));
  if (to == DT_F16) return f16_of_f32(f32_of(a));
  if (from == DT_F16) return f32_bits(f32_of_f16((uint16_t)a));
  if (!dtype_is_float(from)) {
    int64_t v = widen(from, a);
    return to == DT_F32 ? f32_bits((float)v) : to == DT_F64 ? f64_bits((double)v) : cut(to, (uint64_t)v);
  }
  double v = from == DT_F32 ? (double)f32_of(a) : f64_of(a);
  switch (to) {
  case DT_F32: return f32_bits((float)v);
  case DT_F64: return f64_bits(v);
  case DT_BOOL: return v != 0;
  case DT_U8: return v >= 255 ? 255 : v > 0 ? (uint64_t)v : 0;
  case DT_I32:
    if (v != v) return 0;
    return cut(to, (uint64_t)(v >= 0x1p31 ? INT32_MAX : v < -0x1p31 ? INT32_MIN : (int64_t)v));
  case DT_I64:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  if (v != v) return 0;
  return (uint64_t)(v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v);
}

uint64_t scalar_convert(enum dtype to, enum dtype from, uint64_t bits) { return convert(to, from, bits); }

uint64_t scalar_eval(const struct sinst *inst, enum dtype operand, uint64_t a, uint64_t b, uint64_t c) {
  if (inst->op == S_CONST) return inst->bits;
  if (inst->op == S_SELECT) return a ? b : c;
  if (inst->op == S_CONVERT) return convert(inst->dtype, operand, a);
  if (inst->op == S_BITCAST) return a;
  if (operand == DT_F32) return eval_f32(inst->op, f32_of(a), f32_of(b), f32_of(c));
  if (operand == DT_F64) return eval_f64(inst->op, f64_of(a), f64_of(b), f64_of(c));
  return eval_int(inst->op, operand, a, b);
}

void sprog_eval(const struct sprog *p, const uint64_t *args, const int64_t *index, const int64_t *params,
                uint64_t *values) {
  for (int v = 0; v < p->count; v++) {
    const struct sinst *i = &p->inst[v];
    if (i->op == S_ARG)
      values[v] = args[i->a];
    else if (i->op == S_INDEX)
      values[v] = (uint64_t)index[i->a];
    else if (i->op == S_PARAM)
      values[v] = (uint64_t)params[i->a];
    else if (i->op == S_CONST)
      values[v] = i->bits;
    else /* unused operands are 0, and 0 < v */
      values[v] = scalar_eval(i, p->inst[i->a].dtype, values[i->a], values[i->b], values[i->c]);
  }
}

/* Rows of operands: for each instruction a loop that the compiler knows it in. */
#define ROW(eval)                            \
  for (int e = 0; e < n; e++) out[e] = eval; \
  break

static void row_f32(enum sop op, int n, const uint64_t *a, const uint64_t *b, const uint64_t *c,
                    uint64_t *out) {
  switch (op) {
#define SOP(op, name, operands, on) \
  case S_##op:                      \
    ROW(eval_f32(S_##op, f32_of(a[e]), f32_of(b[e]), f32_of(c[e])));
#include "ir/scalar/scalar.def"
#undef SOP
  }
}

static void row_f64(enum sop op, int n, const uint64_t *a, const uint64_t *b, const uint64_t *c,
                    uint64_t *out) {
  switch (op) {
#define SOP(op, name, operands, on) \
  case S_##op:                      \
    ROW(eval_f64(S_##op, f64_of(a[e]), f64_of(b[e]), f64_of(c[e])));
#include "ir/scalar/scalar.def"
#undef SOP
  }
}

static void row_int(enum sop op, enum dtype d, int n, const uint64_t *a, const uint64_t *b, uint64_t *out) {
  switch (op) {
#define SOP(op, name, operands, on) \
  case S_##op:                      \
    ROW(eval_int(S_##op, d, a[e], b[e]));
#include "ir/scalar/scalar.def"
#undef SOP
  }
}

/* What scalar_eval makes of each of `n` operands. */
static void eval_row(const struct sinst *inst, enum dtype operand, int n, const uint64_t *a,
                     const uint64_t *b, const uint64_t *c, uint64_t *out) {
  enum sop op = (enum sop)inst->op;
  if (op == S_SELECT)
    for (int e = 0; e < n; e++) out[e] = a[e] ? b[e] : c[e];
  else if (op == S_CONVERT)
    for (int e = 0; e < n; e++) out[e] = convert((enum dtype)inst->dtype, operand, a[e]);
  else if (op == S_BITCAST)
    memcpy(out, a, (size_t)n * sizeof *out);
  else if (operand == DT_F32)
    row_f32(op, n, a, b, c, out);
  else if (operand == DT_F64)
    row_f64(op, n, a, b, c, out);
  else
    row_int(op, operand, n, a, b, out);
}

void sprog_eval_row(const struct sprog *p, int n, const uint64_t *args, uint64_t *values) {
  uint64_t *out = values;
  for (int v = 0; v < p->count; v++, out += n) {
    const struct sinst *i = &p->inst[v];
    assert(i->op != S_INDEX && i->op != S_PARAM);
    if (i->op == S_ARG)
      memcpy(out, args + (size_t)i->a * (size_t)n, (size_t)n * sizeof *out);
    else if (i->op == S_CONST)
      for (int e = 0; e < n; e++) out[e] = i->bits;
    else
      eval_row(i, (enum dtype)p->inst[i->a].dtype, n, values + (size_t)i->a * (size_t)n,
               values + (size_t)i->b * (size_t)n, values + (size_t)i->c * (size_t)n, out);
  }
}

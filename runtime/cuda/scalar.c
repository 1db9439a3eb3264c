/* SPDX-License-Identifier: Apache-2.0 */
/* One instruction of a scalar program as an expression of CUDA C: a further reading of ir/scalar/scalar.h.
 *
 * No operand is undefined behaviour: signed integers wrap by way of unsigned ones, what does not fit on
 * conversion is asked for first. Contraction is switched off when the text is compiled. A bool is an int, 0
 * or 1, and one byte in memory. */
#include "runtime/cuda/emit.h"

#include <assert.h>
#include <string.h>

const char *cuda_type(enum dtype d) {
  static const char *const names[DT_COUNT] = {
      [DT_F32] = "float",           [DT_F64] = "double",         [DT_I32] = "int",
      [DT_I64] = "long long",       [DT_U8] = "unsigned char",   [DT_BOOL] = "int",
      [DT_BF16] = "unsigned short", [DT_F16] = "unsigned short",
  };
  return names[d];
}

const char *cuda_memory(enum dtype d) { return cuda_type(d == DT_BOOL ? DT_U8 : d); }

/* ---- constants ---- */

/* Hexadecimal and exact; what is subnormal, infinite or no number is given as bits. */
static void put_float(struct str *s, uint64_t bits, int mantissa, int exponents, const char *cast,
                      const char *suffix) {
  int bias = (1 << (exponents - 1)) - 1;
  int exponent = (int)(bits >> mantissa & ((1u << exponents) - 1)) - bias;
  uint64_t fraction = bits & ((UINT64_C(1) << mantissa) - 1);
  bool negative = bits >> (mantissa + exponents) & 1;
  if (exponent > bias || (exponent == -bias && fraction)) {
    str_printf(s, "%s(0x%llx%s)", cast, (unsigned long long)bits, mantissa > 32 ? "LL" : "");
    return;
  }
  str_put(s, negative ? "(-" : "");
  if (exponent == -bias) {
    str_printf(s, "0.0%s", suffix);
  } else {
    int digits = (mantissa + 3) / 4;
    fraction <<= 4 * digits - mantissa;
    while (digits > 1 && (fraction & 15) == 0) fraction >>= 4, digits--;
    str_printf(s, "0x1.%0*llxp%+d%s", digits, (unsigned long long)fraction, exponent, suffix);
  }
  str_put(s, negative ? ")" : "");
}

void cuda_constant(struct str *s, enum dtype d, uint64_t bits) {
  switch (d) {
  case DT_F32: put_float(s, (uint32_t)bits, 23, 8, "__int_as_float", "f"); break;
  case DT_F64: put_float(s, bits, 52, 11, "__longlong_as_double", ""); break;
  case DT_I32:
    if ((uint32_t)bits == UINT32_C(1) << 31)
      str_put(s, "(-2147483647 - 1)");
    else if (bits >> 31 & 1)
      str_printf(s, "(-%u)", (unsigned)(0 - (uint32_t)bits));
    else
      str_printf(s, "%u", (unsigned)bits);
    break;
  case DT_I64:
    if (bits == UINT64_C(1) << 63)
      str_put(s, "(-9223372036854775807LL - 1)");
    else if (bits >> 63)
      str_printf(s, "(-%lluLL)", (unsigned long long)(0 - bits));
    else
      str_printf(s, "%lluLL", (unsigned long long)bits);
    break;
  case DT_U8:
  case DT_BOOL:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: str_printf(s, "%u", (unsigned)bits); break;
  }
}

/* ---- functions and types that are written in front if they are used ---- */

#define TEXT(macro) TEXT_OF(macro)
#define TEXT_OF(x)  #x

static const struct {
  const char *name, *text;
} helpers[] = {
    {"four_f32", "struct __attribute__((aligned(16))) four_f32 { float v[4]; };\n"},
    {"four_f64", "struct __attribute__((aligned(16))) four_f64 { double v[4]; };\n"},
    {"four_i32", "struct __attribute__((aligned(16))) four_i32 { int v[4]; };\n"},
    {"four_i64", "struct __attribute__((aligned(16))) four_i64 { long long v[4]; };\n"},
    {"four_u8", "struct __attribute__((aligned(4))) four_u8 { unsigned char v[4]; };\n"},
    {"four_bf16", "struct __attribute__((aligned(8))) four_bf16 { unsigned short v[4]; };\n"},
    {"four_f16", "struct __attribute__((aligned(8))) four_f16 { unsigned short v[4]; };\n"},
    {"quotient", "/* of numbers that are not negative; most fit into 32 bits, which is much faster */\n"
                 "static __device__ long long quotient(long long a, long long b) {\n"
                 "  return (a | b) >> 32 ? a / b : (long long)((unsigned)a / (unsigned)b);\n"
                 "}\n"},
    {"row_pieces", "static __device__ long long row_pieces(long long n) {\n"
                   "  return " TEXT(CUDA_ROW_PIECES) ";\n"
                                                     "}\n"},
    {"column_pieces", "static __device__ long long column_pieces(long long n) {\n"
                      "  return " TEXT(CUDA_COLUMN_PIECES) ";\n"
                                                           "}\n"},
    {"div_i32", "static __device__ int div_i32(int a, int b) {\n"
                "  return b == 0 ? 0 : b == -1 ? (int)(0u - (unsigned)a) : a / b;\n"
                "}\n"},
    {"rem_i32", "static __device__ int rem_i32(int a, int b) { return b == 0 || b == -1 ? 0 : a % b; }\n"},
    {"div_i64", "static __device__ long long div_i64(long long a, long long b) {\n"
                "  return b == 0 ? 0 : b == -1 ? (long long)(0ull - (unsigned long long)a) : a / b;\n"
                "}\n"},
    {"rem_i64", "static __device__ long long rem_i64(long long a, long long b) {\n"
                "  return b == 0 || b == -1 ? 0 : a % b;\n"
                "}\n"},
    {"i32_of_f32", "static __device__ int i32_of_f32(float x) {\n"
                   "  return x != x ? 0 : x >= 0x1p+31f ? 2147483647\n"
                   "       : x < -0x1p+31f ? -2147483647 - 1 : (int)x;\n"
                   "}\n"},
    {"i32_of_f64", "static __device__ int i32_of_f64(double x) {\n"
                   "  return x != x ? 0 : x >= 0x1p+31 ? 2147483647\n"
                   "       : x < -0x1p+31 ? -2147483647 - 1 : (int)x;\n"
                   "}\n"},
    {"i64_of_f32", "static __device__ long long i64_of_f32(float x) {\n"
                   "  return x != x ? 0 : x >= 0x1p+63f ? 9223372036854775807LL\n"
                   "       : x < -0x1p+63f ? -9223372036854775807LL - 1 : (long long)x;\n"
                   "}\n"},
    {"i64_of_f64", "static __device__ long long i64_of_f64(double x) {\n"
                   "  return x != x ? 0 : x >= 0x1p+63 ? 9223372036854775807LL\n"
                   "       : x < -0x1p+63 ? -9223372036854775807LL - 1 : (long long)x;\n"
                   "}\n"},
    {"u8_of_f32", "static __device__ unsigned char u8_of_f32(float x) {\n"
                  "  return x >= 255.0f ? 255 : x > 0.0f ? (unsigned char)(int)x : 0;\n"
                  "}\n"},
    {"u8_of_f64", "static __device__ unsigned char u8_of_f64(double x) {\n"
                  "  return x >= 255.0 ? 255 : x > 0.0 ? (unsigned char)(int)x : 0;\n"
                  "}\n"},
    {"bf16_of_f32", "static __device__ unsigned short bf16_of_f32(float x) {\n"
                    "  unsigned b = (unsigned)__float_as_int(x);\n"
                    "  unsigned near = x != x ? b | 0x400000u : b + 0x7fffu + (b >> 16 & 1u);\n"
                    "  return (unsigned short)((b & 0x7f800000u ? near : b & 0x80000000u) >> 16);\n"
                    "}\n"},
    {"to_f16",
     "/* 2^-24, the least binary16, is the last place of 0.5 in f32 */\n"
     "static __device__ unsigned short to_f16(float x) {\n"
     "  unsigned b = (unsigned)__float_as_int(x), size = b & 0x7fffffffu;\n"
     "  unsigned small = (unsigned)__float_as_int(__int_as_float((int)size) + 0.5f) - 0x3f000000u;\n"
     "  unsigned up = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;\n"
     "  unsigned large = x != x ? 0x7e00u | (size >> 13 & 0x3ffu) : up < 0x7c00u ? up : 0x7c00u;\n"
     "  return (unsigned short)((b >> 16 & 0x8000u) | (size < 0x38800000u ? small : large));\n"
     "}\n"},
    {"of_f16",
     "static __device__ float of_f16(unsigned short half) {\n"
     "  unsigned sign = (half & 0x8000u) << 16, size = half & 0x7fffu;\n"
     "  unsigned small = (unsigned)__float_as_int(__int_as_float((int)(size + 0x3f000000u)) - 0.5f);\n"
     "  unsigned large = size < 0x7c00u ? (size << 13) + 0x38000000u : size << 13 | 0x7f800000u;\n"
     "  return __int_as_float((int)(sign | (size < 0x400u ? small : large)));\n"
     "}\n"},
};

void cuda_helpers(struct str *s, const char *text) {
  for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
    if (strstr(text, helpers[i].name)) str_put(s, helpers[i].text);
}

/* ---- instructions ---- */

static const char *infix(enum sop op) {
  static const char *const signs[S_BITCAST + 1] = {
      [S_ADD] = "+", [S_SUB] = "-", [S_MUL] = "*", [S_DIV] = "/", [S_EQ] = "==", [S_NE] = "!=",
      [S_LT] = "<",  [S_LE] = "<=", [S_AND] = "&", [S_OR] = "|",  [S_XOR] = "^"};
  return signs[op];
}

static const char *float_call(enum sop op, bool wide) {
  static const char *const calls[S_BITCAST + 1][2] = {
      [S_REM] = {"fmodf", "fmod"},     [S_FMA] = {"__fmaf_rn", "__fma_rn"},
      [S_ABS] = {"fabsf", "fabs"},     [S_SQRT] = {"__fsqrt_rn", "__dsqrt_rn"},
      [S_FLOOR] = {"floorf", "floor"}, [S_CEIL] = {"ceilf", "ceil"},
      [S_TRUNC] = {"truncf", "trunc"}, [S_RINT] = {"rintf", "rint"}};
  return calls[op][wide];
}

static const char *on_floats(struct arena *a, enum sop op, bool wide, const char *x, const char *y,
                             const char *z) {
  const char *call = float_call(op, wide), *sign = infix(op);
  if (call && sop_operands(op) == 1) return arena_printf(a, "%s(%s)", call, x);
  if (call && sop_operands(op) == 2) return arena_printf(a, "%s(%s, %s)", call, x, y);
  if (call) return arena_printf(a, "%s(%s, %s, %s)", call, x, y, z);
  if (sign) return arena_printf(a, "%s %s %s", x, sign, y);
  if (op == S_NEG) return arena_printf(a, "-%s", x);
  assert(op == S_MIN || op == S_MAX);
  /* If x is a NaN it is taken; if y is, the comparison is false and y is taken. */
  return arena_printf(a, "%s %s %s || %s != %s ? %s : %s", x, op == S_MIN ? "<" : ">", y, x, x, x, y);
}

/* Integers cut to 0 and 1: any other number is true. Shifts by a count modulo 8, as of bytes. */
static const char *on_bools(struct arena *a, enum sop op, const char *x, const char *y) {
  switch (op) {
  case S_ADD:
  case S_MAX: return arena_printf(a, "%s | %s", x, y);
  case S_SUB: return arena_printf(a, "%s ^ %s", x, y);
  case S_MUL:
  case S_DIV:
  case S_MIN: return arena_printf(a, "%s & %s", x, y);
  case S_REM: return "0";
  case S_NOT: return arena_printf(a, "!%s", x);
  case S_NEG:
  case S_ABS:
  case S_SHL: return x;
  case S_SHR:
  case S_SAR: return arena_printf(a, "%s >> %s", x, y);
  case S_EQ:
  case S_NE:
  case S_LT:
  case S_LE:
  case S_AND:
  case S_OR:
  case S_XOR: return arena_printf(a, "%s %s %s", x, infix(op), y);
#define SOP SOP_NOT_ON_INTEGERS
#include "ir/scalar/scalar.def"
#undef SOP
  case S_MULHI: break;
  }
  assert(!"not an operation on integers");
  return x;
}

static const char *on_bytes(struct arena *a, enum sop op, const char *x, const char *y) {
  switch (op) {
  case S_ADD:
  case S_SUB:
  case S_MUL:
  case S_XOR: return arena_printf(a, "(unsigned char)(%s %s %s)", x, infix(op), y);
  case S_DIV:
  case S_REM: return arena_printf(a, "%s ? %s %s %s : 0", y, x, op == S_DIV ? "/" : "%", y);
  case S_NEG: return arena_printf(a, "(unsigned char)(0 - %s)", x);
  case S_ABS: return x;
  case S_NOT: return arena_printf(a, "!%s", x);
  case S_SHL: return arena_printf(a, "(unsigned char)(%s << (%s & 7))", x, y);
  case S_SHR:
  case S_SAR: return arena_printf(a, "%s >> (%s & 7)", x, y);
  case S_MIN:
  case S_MAX: return arena_printf(a, "%s %s %s ? %s : %s", x, op == S_MIN ? "<" : ">", y, x, y);
  case S_EQ:
  case S_NE:
  case S_LT:
  case S_LE:
  case S_AND:
  case S_OR: return arena_printf(a, "%s %s %s", x, infix(op), y);
#define SOP SOP_NOT_ON_INTEGERS
#include "ir/scalar/scalar.def"
#undef SOP
  case S_MULHI: break;
  }
  assert(!"not an operation on integers");
  return x;
}

static const char *on_integers(struct arena *a, enum sop op, bool wide, const char *x, const char *y) {
  const char *t = wide ? "long long" : "int", *u = wide ? "unsigned long long" : "unsigned";
  int last = wide ? 63 : 31;
  switch (op) {
  case S_ADD:
  case S_SUB:
  case S_MUL: return arena_printf(a, "(%s)((%s)%s %s (%s)%s)", t, u, x, infix(op), u, y);
  case S_DIV: return arena_printf(a, "div_i%d(%s, %s)", last + 1, x, y);
  case S_REM: return arena_printf(a, "rem_i%d(%s, %s)", last + 1, x, y);
  case S_NEG: return arena_printf(a, "(%s)((%s)0 - (%s)%s)", t, u, u, x);
  case S_ABS: return arena_printf(a, "%s < 0 ? (%s)((%s)0 - (%s)%s) : %s", x, t, u, u, x, x);
  case S_NOT: return arena_printf(a, "!%s", x);
  case S_SHL: return arena_printf(a, "(%s)((%s)%s << (%s & %d))", t, u, x, y, last);
  case S_SHR: return arena_printf(a, "(%s)((%s)%s >> (%s & %d))", t, u, x, y, last);
  case S_SAR: return arena_printf(a, "%s >> (%s & %d)", x, y, last);
  case S_MULHI: return arena_printf(a, "(int)__umulhi((unsigned)%s, (unsigned)%s)", x, y);
  case S_MIN:
  case S_MAX: return arena_printf(a, "%s %s %s ? %s : %s", x, op == S_MIN ? "<" : ">", y, x, y);
  case S_EQ:
  case S_NE:
  case S_LT:
  case S_LE:
  case S_AND:
  case S_OR:
  case S_XOR: return arena_printf(a, "%s %s %s", x, infix(op), y);
#define SOP SOP_NOT_ON_INTEGERS
#include "ir/scalar/scalar.def"
#undef SOP
    break;
  }
  assert(!"not an operation on integers");
  return x;
}

static const char *convert(struct arena *a, enum dtype to, enum dtype from, const char *x) {
  if (to == from) return x;
  if (to == DT_BF16) return arena_printf(a, "bf16_of_f32(%s)", x);
  if (from == DT_BF16) return arena_printf(a, "__int_as_float((int)%s << 16)", x);
  if (to == DT_F16) return arena_printf(a, "to_f16(%s)", x);
  if (from == DT_F16) return arena_printf(a, "of_f16(%s)", x);
  if (to == DT_BOOL) return arena_printf(a, "%s != 0", x);
  if (dtype_is_float(from) && !dtype_is_float(to))
    return arena_printf(a, "%s_of_%s(%s)", dtype_name(to), dtype_name(from), x);
  return arena_printf(a, "(%s)%s", cuda_type(to), x);
}

static const char *bitcast(struct arena *a, enum dtype to, enum dtype from, const char *x) {
  if (to == from) return x;
  const char *call = to == DT_F32   ? "__int_as_float"
                     : to == DT_F64 ? "__longlong_as_double"
                     : to == DT_I32 ? "__float_as_int"
                                    : "__double_as_longlong";
  return arena_printf(a, "%s(%s)", call, x);
}

const char *cuda_expression(struct arena *a, const struct sinst *i, enum dtype operand, const char *x,
                            const char *y, const char *z) {
  enum sop op = (enum sop)i->op;
  if (op == S_SELECT) return arena_printf(a, "%s ? %s : %s", x, y, z);
  if (op == S_CONVERT) return convert(a, (enum dtype)i->dtype, operand, x);
  if (op == S_BITCAST) return bitcast(a, (enum dtype)i->dtype, operand, x);
  switch (operand) {
  case DT_F32:
  case DT_F64: return on_floats(a, op, operand == DT_F64, x, y, z);
  case DT_U8: return on_bytes(a, op, x, y);
  case DT_BOOL: return on_bools(a, op, x, y);
  case DT_I32:
  case DT_I64:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return on_integers(a, op, operand == DT_I64, x, y);
}

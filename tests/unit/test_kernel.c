/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar programs and kernels: recording, every primitive's corner cases, the loop nests and the order of
 * reductions. */
#include "base/bits.h"
#include "ir/scalar/kernel.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static uint64_t run(enum sop op, enum dtype result, enum dtype operand, uint64_t a, uint64_t b, uint64_t c) {
  struct sinst i = {.op = (uint8_t)op, .dtype = (uint8_t)result};
  return scalar_eval(&i, operand, a, b, c);
}

static uint64_t i32_op(enum sop op, int32_t a, int32_t b) {
  return run(op, DT_I32, DT_I32, (uint32_t)a, (uint32_t)b, 0);
}
static uint64_t i64_op(enum sop op, int64_t a, int64_t b) {
  return run(op, DT_I64, DT_I64, (uint64_t)a, (uint64_t)b, 0);
}
static uint64_t u8_op(enum sop op, int a, int b) {
  return run(op, DT_U8, DT_U8, (uint64_t)a, (uint64_t)b, 0);
}
static uint64_t f32_op(enum sop op, float a, float b) {
  return run(op, DT_F32, DT_F32, f32_bits(a), f32_bits(b), 0);
}

static void test_integers(void **s) {
  (void)s;
  assert_int_equal(i32_op(S_ADD, INT32_MAX, 1), 0x80000000);
  assert_int_equal(i32_op(S_SUB, 0, 1), 0xffffffff);
  assert_int_equal(i32_op(S_MUL, 65536, 65536), 0);
  assert_int_equal(i32_op(S_DIV, -7, 2), (uint32_t)-3);
  assert_int_equal(i32_op(S_REM, -7, 2), (uint32_t)-1);
  assert_int_equal(i32_op(S_DIV, 5, 0), 0);
  assert_int_equal(i32_op(S_REM, 5, 0), 0);
  assert_int_equal(i32_op(S_DIV, INT32_MIN, -1), 0x80000000);
  assert_int_equal(i32_op(S_REM, INT32_MIN, -1), 0);
  assert_int_equal(i64_op(S_DIV, INT64_MIN, -1), UINT64_C(1) << 63);
  assert_int_equal(i64_op(S_REM, INT64_MIN, -1), 0);
  assert_int_equal(i64_op(S_ABS, INT64_MIN, 0), UINT64_C(1) << 63);
  assert_int_equal(i32_op(S_NEG, INT32_MIN, 0), 0x80000000);
  assert_int_equal(i32_op(S_MIN, -1, 1), 0xffffffff);
  assert_int_equal(i32_op(S_MAX, -1, 1), 1);
  assert_int_equal(i32_op(S_SAR, -8, 1), (uint32_t)-4);
  assert_int_equal(i32_op(S_SHR, -8, 1), 0x7ffffffc);
  assert_int_equal(i32_op(S_SHL, 3, 31), 0x80000000);
  assert_int_equal(i32_op(S_MULHI, -1, -1), 0xfffffffe);
  assert_int_equal(u8_op(S_ADD, 200, 100), 44);
  assert_int_equal(u8_op(S_SUB, 0, 1), 255);
  assert_int_equal(u8_op(S_DIV, 200, 100), 2);
  assert_int_equal(u8_op(S_MAX, 200, 100), 200);
  assert_int_equal(run(S_LT, DT_BOOL, DT_I32, (uint32_t)-1, 0, 0), 1);
  assert_int_equal(run(S_NOT, DT_BOOL, DT_BOOL, 0, 0, 0), 1);
}

static void test_floats(void **s) {
  (void)s;
  assert_int_equal(f32_op(S_MAX, 0.0f, -0.0f), f32_bits(-0.0f));
  assert_int_equal(f32_op(S_MAX, -0.0f, 0.0f), f32_bits(0.0f));
  assert_int_equal(f32_op(S_MIN, -0.0f, 0.0f), f32_bits(0.0f));
  for (int swap = 0; swap < 2; swap++) {
    uint32_t bits = (uint32_t)(swap ? f32_op(S_MIN, NAN, 1) : f32_op(S_MAX, 1, NAN));
    assert_true((bits & 0x7fffffff) > 0x7f800000);
  }
  assert_int_equal(f32_op(S_RINT, 2.5f, 0), f32_bits(2));
  assert_int_equal(f32_op(S_RINT, -0.5f, 0), f32_bits(-0.0f));
  assert_int_equal(f32_op(S_REM, -7, 2.5f), f32_bits(-2));
  assert_int_equal(f32_op(S_NEG, 0, 0), f32_bits(-0.0f));
  /* One rounding: the square of 1+2^-12 needs 25 bits. */
  float x = 1 + 0x1p-12f;
  assert_int_equal(run(S_FMA, DT_F32, DT_F32, f32_bits(x), f32_bits(x), f32_bits(-1)),
                   f32_bits(0x1p-11f + 0x1p-24f));
  assert_int_equal(run(S_NE, DT_BOOL, DT_F64, f64_bits(NAN), f64_bits(NAN), 0), 1);
  assert_int_equal(run(S_EQ, DT_BOOL, DT_F64, f64_bits(NAN), f64_bits(NAN), 0), 0);
  assert_int_equal(run(S_LE, DT_BOOL, DT_F64, f64_bits(NAN), f64_bits(1), 0), 0);
}

static uint64_t convert(enum dtype to, enum dtype from, uint64_t a) {
  return run(S_CONVERT, to, from, a, 0, 0);
}

static void test_conversions(void **s) {
  (void)s;
  assert_int_equal(convert(DT_I32, DT_F32, f32_bits(-2.9f)), (uint32_t)-2);
  assert_int_equal(convert(DT_I32, DT_F32, f32_bits(3e9f)), 0x7fffffff);
  assert_int_equal(convert(DT_I32, DT_F64, f64_bits(-1e300)), 0x80000000);
  assert_int_equal(convert(DT_I32, DT_F64, f64_bits(-2147483648.9)), 0x80000000);
  assert_int_equal(convert(DT_I64, DT_F64, f64_bits(0x1p63)), INT64_MAX);
  assert_int_equal(convert(DT_I64, DT_F32, f32_bits(-INFINITY)), UINT64_C(1) << 63);
  assert_int_equal(convert(DT_I64, DT_F64, f64_bits(NAN)), 0);
  assert_int_equal(convert(DT_U8, DT_F32, f32_bits(300)), 255);
  assert_int_equal(convert(DT_U8, DT_F32, f32_bits(-1)), 0);
  assert_int_equal(convert(DT_U8, DT_F32, f32_bits(NAN)), 0);
  assert_int_equal(convert(DT_U8, DT_I32, 0x1234), 0x34);
  assert_int_equal(convert(DT_I64, DT_I32, 0xffffffff), UINT64_MAX);
  assert_int_equal(convert(DT_I64, DT_U8, 200), 200);
  assert_int_equal(convert(DT_BOOL, DT_F32, f32_bits(-0.0f)), 0);
  assert_int_equal(convert(DT_BOOL, DT_F32, f32_bits(NAN)), 1);
  assert_int_equal(convert(DT_F32, DT_BOOL, 1), f32_bits(1));
  assert_int_equal(convert(DT_F32, DT_I64, INT64_MAX), f32_bits(0x1p63f));
  assert_int_equal(convert(DT_F32, DT_F64, f64_bits(1e40)), f32_bits(INFINITY));
}

static void test_recording(void **s) {
  (void)s;
  struct arena *a = arena_create();
  struct sprog p = sprog_make(a);
  sval x = s_arg(&p, 0, DT_F32), y = s_arg(&p, 1, DT_F32);
  sval sum = s_binary(&p, S_ADD, x, y);
  assert_int_equal(s_binary(&p, S_ADD, x, y), sum);
  assert_int_not_equal(s_binary(&p, S_ADD, y, x), sum);
  assert_int_equal(s_arg(&p, 1, DT_F32), y);
  /* constants are computed, but not NaN; zeros keep their signs */
  assert_int_equal(s_binary(&p, S_MUL, s_const(&p, DT_F32, 3), s_const(&p, DT_F32, 0.5)),
                   s_const(&p, DT_F32, 1.5));
  assert_int_not_equal(s_const(&p, DT_F32, 0.0), s_const(&p, DT_F32, -0.0));
  sval nan = s_binary(&p, S_DIV, s_const(&p, DT_F32, 0), s_const(&p, DT_F32, 0));
  assert_int_equal(p.inst[nan].op, S_DIV);
  assert_int_equal(p.inst[s_int(&p, DT_I32, -5)].bits, 0xfffffffb);
  assert_int_equal(s_convert(&p, DT_F32, x), x);
  /* many instructions: the table grows and still finds them */
  sval chain = x;
  for (int i = 0; i < 1000; i++) chain = s_fma(&p, chain, y, s_const(&p, DT_F32, i));
  int count = p.count;
  sval again = x;
  for (int i = 0; i < 1000; i++) again = s_fma(&p, again, y, s_const(&p, DT_F32, i));
  assert_int_equal(again, chain);
  assert_int_equal(p.count, count);
  arena_destroy(a);
}

/* The same value recorded in another order is the same program once ordered. */
static void test_order(void **s) {
  (void)s;
  struct arena *a = arena_create();
  struct sprog p[2] = {sprog_make(a), sprog_make(a)};
  sval result[2][2];
  for (int i = 0; i < 2; i++) {
    sval x, y;
    if (i == 0)
      x = s_arg(&p[i], 0, DT_F32), y = s_arg(&p[i], 1, DT_F32);
    else
      y = s_arg(&p[i], 1, DT_F32), x = s_arg(&p[i], 0, DT_F32);
    sval q = s_unary(&p[i], S_SQRT, i ? y : x), r = s_unary(&p[i], S_SQRT, i ? x : y);
    result[i][0] = s_binary(&p[i], S_SUB, i ? r : q, i ? q : r);
    result[i][1] = x;
    sprog_order(&p[i], result[i], 2);
  }
  assert_int_equal(p[0].count, 5);
  assert_true(sprog_hash(&p[0], 0) == sprog_hash(&p[1], 0));
  assert_int_equal(result[0][0], result[1][0]);
  assert_int_equal(result[0][1], result[1][1]);
  arena_destroy(a);
}

/* What a result reads, directly or not, and nothing else; S_ARG and S_INDEX keep numbers of their own in `a`. */
static void test_live(void **s) {
  (void)s;
  struct arena *a = arena_create();
  struct sprog p = sprog_make(a);
  s_arg(&p, 1, DT_F64);                       /* 0: dead */
  sval x = s_arg(&p, 0, DT_F64);              /* 1 */
  sval i = s_index(&p, 0);                    /* 2 */
  sval dead = s_unary(&p, S_SQRT, x);         /* 3 */
  sval wide = s_convert(&p, DT_F64, i);       /* 4 */
  sval less = s_binary(&p, S_LT, x, wide);    /* 5 */
  sval best = s_select(&p, less, wide, dead); /* 6: reads all three of its operands */
  static const bool of_less[] = {false, true, true, false, true, true, false};
  assert_memory_equal(sprog_live(a, &p, &less, 1), of_less, sizeof of_less);
  const sval both[] = {dead, wide};
  static const bool of_both[] = {false, true, true, true, true, false, false};
  assert_memory_equal(sprog_live(a, &p, both, 2), of_both, sizeof of_both);
  static const bool of_best[] = {false, true, true, true, true, true, true};
  assert_memory_equal(sprog_live(a, &p, &best, 1), of_best, sizeof of_best);
  sval use[3];
  assert_int_equal(sinst_operands(&p.inst[best], use), 3);
  assert_int_equal(use[0], less);
  assert_int_equal(use[1], wide);
  assert_int_equal(use[2], dead);
  assert_int_equal(sinst_operands(&p.inst[x], use), 0);
  arena_destroy(a);
}

static void test_hash(void **s) {
  (void)s;
  struct arena *a = arena_create();
  struct sprog sum = sprog_make(a), difference = sprog_make(a);
  s_binary(&sum, S_ADD, s_arg(&sum, 0, DT_F64), s_const(&sum, DT_F64, 2));
  s_binary(&difference, S_SUB, s_arg(&difference, 0, DT_F64), s_const(&difference, DT_F64, 2));
  uint64_t h = sprog_hash(&sum, 1);
  assert_true(h == sprog_hash(&sum, 1) && h != sprog_hash(&sum, 2) && h != sprog_hash(&difference, 1));
  arena_destroy(a);
}

/* ---- rows ---- */

/* Which instructions an operand of this type has. */
static bool takes(enum sop op, enum dtype d) {
  if (op <= S_PARAM) return false;
  if (op == S_SELECT || op == S_CONVERT) return true;
  if (op == S_BITCAST) return d != DT_BOOL && d != DT_U8;
  if (op >= S_AND && op <= S_MULHI) {
    if (op == S_NOT) return d == DT_BOOL;
    if (op == S_MULHI) return d == DT_I32;
    return dtype_is_int(d) || (d == DT_BOOL && op <= S_XOR);
  }
  if (op == S_FMA || (op >= S_SQRT && op <= S_RINT)) return dtype_is_float(d);
  return d != DT_BOOL || op >= S_EQ;
}

static uint64_t corner(enum dtype d, int i) {
  static const double floats[] = {0.0, -0.0, 1.5, -2.5, 3e9, -1e-300, 0.75, (double)INFINITY, -7};
  static const int64_t ints[] = {0, 1, -1, 5, INT32_MAX, INT32_MIN, 200, INT64_MIN, 31};
  uint64_t bits = (uint64_t)ints[i % 9];
  if (d == DT_F32) return f32_bits((float)floats[i % 9]);
  if (d == DT_F64) return f64_bits(floats[i % 9]);
  return d == DT_I32 ? (uint32_t)bits : d == DT_U8 ? (uint8_t)bits : d == DT_BOOL ? bits & 1 : bits;
}

static void check_row(enum sop op, enum dtype to, enum dtype d) {
  enum { N = 81, VALUES = 5 };
  static uint64_t args[3 * N], rows[VALUES * N];
  struct sinst inst[VALUES] = {{.op = S_CONST, .dtype = (uint8_t)d, .bits = corner(d, 3)}};
  for (int k = 0; k < 3; k++)
    inst[1 + k] = (struct sinst){.op = S_ARG, .dtype = (uint8_t)d, .a = (uint16_t)k};
  inst[4] = (struct sinst){.op = (uint8_t)op, .dtype = (uint8_t)to, .a = 1, .b = 2, .c = 3};
  const struct sprog p = {.inst = inst, .count = VALUES, .cap = VALUES};
  for (int e = 0; e < N; e++)
    for (int k = 0; k < 3; k++) args[k * N + e] = corner(d, k == 0 ? e : k == 1 ? e / 9 : e / 4);
  sprog_eval_row(&p, N, args, rows);
  for (int e = 0; e < N; e++) {
    uint64_t values[VALUES];
    sprog_eval(&p, (uint64_t[]){args[e], args[N + e], args[2 * N + e]}, NULL, NULL, values);
    for (int v = 0; v < VALUES; v++)
      if (rows[v * N + e] != values[v])
        fail_msg("%s of %s, element %d: %#llx, not %#llx", sop_name(op), dtype_name(d), e,
                 (unsigned long long)rows[v * N + e], (unsigned long long)values[v]);
  }
}

/* Every instruction, for every type of its operands, is the same on a row as on one element after the other. */
static void test_rows(void **s) {
  (void)s;
#define SOP(op, name, operands, on) S_##op,
  static const enum sop ops[] = {
#include "ir/scalar/scalar.def"
  };
#undef SOP
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    for (int d = 0; d < DT_BF16; d++)
      for (int to = 0; to < DT_BF16; to++)
        if (takes(ops[i], (enum dtype)d) && (ops[i] == S_CONVERT || to == d))
          check_row(ops[i], (enum dtype)to, (enum dtype)d);
}

/* out[i][j] = a[i][j] * b[j] + j + n, into a itself; and a[i][j] < b[j] as bool. */
static void test_map(void **s) {
  (void)s;
  struct arena *a = arena_create();
  struct kernel k = {
      .kind = KERNEL_MAP, .rank = 2, .vector = 1, .nargs = 4, .noutputs = 2, .nparams = 1, .name = "m"};
  k.args[0] = k.args[2] = (struct kernel_arg){DT_F32, STRIDE_ONE, false};
  k.args[1] = (struct kernel_arg){DT_F32, STRIDE_ONE, false};
  k.args[2].output = true;
  k.args[3] = (struct kernel_arg){DT_BOOL, STRIDE_ONE, true};
  k.body = sprog_make(a);
  sval x = s_arg(&k.body, 0, DT_F32), y = s_arg(&k.body, 1, DT_F32);
  sval at = s_binary(&k.body, S_ADD, s_index(&k.body, 1), s_param(&k.body, 0));
  k.result[0] = s_fma(&k.body, x, y, s_convert(&k.body, DT_F32, at));
  k.result[1] = s_binary(&k.body, S_LT, x, y);
  s_binary(&k.body, S_DIV, y, x); /* no result needs it */
  kernel_settle(&k);
  float v[] = {1, 2, 3, 4, 5, 6}, w[] = {2, 3, 4};
  uint8_t less[6];
  void *args[] = {v, w, v, less};
  int64_t sizes[] = {2, 3, /* a */ 3, 1, /* b */ 0, 1, /* out */ 3, 1, 3, 1, /* n */ 100};
  assert_int_equal(kernel_nsizes(&k), sizeof sizes / sizeof *sizes);
  kernel_eval(&k, args, sizes);
  const float want[] = {102, 107, 114, 108, 116, 126};
  const uint8_t want_less[] = {1, 1, 1, 0, 0, 0};
  assert_memory_equal(v, want, sizeof want);
  assert_memory_equal(less, want_less, sizeof want_less);
  sizes[0] = 0; /* nothing to do, nothing read */
  kernel_eval(&k, (void *[]){NULL, NULL, NULL, NULL}, sizes);

  struct str text = str_make(a);
  kernel_print(&text, &k);
  assert_string_equal(text.data, "kernel m: map, 2 loops, vector loop 1, 1 params\n"
                                 "  arg 0 in f32 stride one\n"
                                 "  arg 1 in f32 stride one\n"
                                 "  arg 2 out f32 stride one\n"
                                 "  arg 3 out bool stride one\n"
                                 "  body\n"
                                 "    v0 = arg 0 : f32\n"
                                 "    v1 = arg 1 : f32\n"
                                 "    v2 = index 1 : i64\n"
                                 "    v3 = param 0 : i64\n"
                                 "    v4 = add v2, v3 : i64\n"
                                 "    v5 = convert v4 : f32\n"
                                 "    v6 = fma v0, v1, v5 : f32\n"
                                 "    v7 = lt v0, v1 : bool\n"
                                 "    give v6, v7\n");
  struct kernel other = k;
  other.name = "another";
  assert_true(kernel_equal(&k, &other));
  other.args[1].vector = STRIDE_ZERO;
  assert_false(kernel_equal(&k, &other));
  arena_destroy(a);
}

/* rank loops, the last nreduce of them reduced: out[...] = reduce(in[...]). */
static struct kernel reduction(struct arena *a, enum reduce_op op, enum dtype d, int rank, int nreduce,
                               int vector) {
  bool arg = op == REDUCE_ARGMAX || op == REDUCE_ARGMIN;
  enum dtype out = arg ? DT_I32 : d;
  struct kernel k = {.kind = KERNEL_REDUCE,
                     .reduce = op,
                     .rank = rank,
                     .nreduce = nreduce,
                     .nsums = 1,
                     .vector = vector,
                     .nargs = 2,
                     .noutputs = 1};
  k.args[0] = (struct kernel_arg){(uint8_t)d, STRIDE_ONE, false};
  k.args[1] = (struct kernel_arg){(uint8_t)out, STRIDE_ZERO, true};
  k.body = sprog_make(a);
  k.result[0] = s_arg(&k.body, 0, d);
  k.epilogue = sprog_make(a);
  k.epilogue_result[0] = s_arg(&k.epilogue, 2, out);
  return k;
}

static float sum_lanes(const float *x, int n) {
  float lane[KERNEL_LANES] = {0};
  for (int i = 0; i < n; i++) lane[i % KERNEL_LANES] += x[i];
  for (int half = KERNEL_LANES / 2; half; half /= 2)
    for (int l = 0; l < half; l++) lane[l] += lane[l + half];
  return lane[0];
}

static void test_sum_order(void **s) {
  (void)s;
  struct arena *a = arena_create();
  float x[3 * 37], got[3];
  uint32_t state = 1;
  for (int i = 0; i < 3 * 37; i++) {
    state = state * 1664525 + 1013904223;
    x[i] = (float)(int32_t)state * 0x1p-24f;
  }
  struct kernel k = reduction(a, REDUCE_SUM, DT_F32, 2, 1, 1);
  void *args[] = {x, got};
  kernel_eval(&k, args, (int64_t[]){3, 37, 37, 1, 1, 0});
  for (int i = 0; i < 3; i++) {
    float want = sum_lanes(x + 37 * i, 37);
    assert_memory_equal(&got[i], &want, sizeof want);
  }
  /* The vector loop is kept: one after another. */
  k = reduction(a, REDUCE_SUM, DT_F32, 2, 1, 0);
  kernel_eval(&k, args, (int64_t[]){3, 37, 37, 1, 1, 0});
  for (int i = 0; i < 3; i++) {
    float want = 0;
    for (int j = 0; j < 37; j++) want += x[37 * i + j];
    assert_memory_equal(&got[i], &want, sizeof want);
  }
  /* Two reduced loops, the outer one in lanes: 37 by 3, transposed in memory. */
  k = reduction(a, REDUCE_SUM, DT_F32, 2, 2, 0);
  kernel_eval(&k, args, (int64_t[]){37, 3, 1, 37, 0, 0});
  float lane[KERNEL_LANES] = {0};
  for (int i = 0; i < 37; i++)
    for (int j = 0; j < 3; j++) lane[i % KERNEL_LANES] += x[37 * j + i];
  for (int half = KERNEL_LANES / 2; half; half /= 2)
    for (int l = 0; l < half; l++) lane[l] += lane[l + half];
  assert_memory_equal(&got[0], &lane[0], sizeof lane[0]);
  arena_destroy(a);
}

static void check_identity(enum reduce_op op, enum dtype d, uint64_t want) {
  struct arena *a = arena_create();
  for (int vector = 0; vector < 2; vector++) {
    struct kernel k = reduction(a, op, d, 2, 1, vector);
    uint64_t got = 0x5555555555555555, word = 0;
    void *args[] = {NULL, &got};
    kernel_eval(&k, args, (int64_t[]){1, 0, 0, 1, 1, 0});
    memcpy(&word, &got, (size_t)dtype_size(k.args[1].dtype));
    assert_int_equal(word, want);
  }
  arena_destroy(a);
}

static void test_identities(void **s) {
  (void)s;
  check_identity(REDUCE_SUM, DT_F32, 0);
  check_identity(REDUCE_SUM, DT_I64, 0);
  check_identity(REDUCE_PROD, DT_F64, f64_bits(1));
  check_identity(REDUCE_PROD, DT_F32, f32_bits(1));
  check_identity(REDUCE_PROD, DT_U8, 1);
  check_identity(REDUCE_MAX, DT_F32, f32_bits(-INFINITY));
  check_identity(REDUCE_MIN, DT_F64, f64_bits(INFINITY));
  check_identity(REDUCE_MAX, DT_I32, 0x80000000);
  check_identity(REDUCE_MIN, DT_I64, INT64_MAX);
  check_identity(REDUCE_MAX, DT_U8, 0);
  check_identity(REDUCE_MIN, DT_U8, 255);
  check_identity(REDUCE_MAX, DT_BOOL, 0);
  check_identity(REDUCE_MIN, DT_BOOL, 1);
  check_identity(REDUCE_ARGMAX, DT_F32, 0);
  check_identity(REDUCE_ARGMIN, DT_I32, 0);
}

static int32_t arg(enum reduce_op op, const float *x, int n, int vector) {
  struct arena *a = arena_create();
  struct kernel k = reduction(a, op, DT_F32, 2, 1, vector);
  int32_t got = -1;
  void *args[] = {(void *)(uintptr_t)x, &got};
  kernel_eval(&k, args, (int64_t[]){1, n, 0, 1, 1, 0});
  arena_destroy(a);
  return got;
}

static void test_arg(void **s) {
  (void)s;
  float x[40];
  for (int vector = 0; vector < 2; vector++) {
    for (int i = 0; i < 40; i++) x[i] = (float)(i * 7 % 13);
    assert_int_equal(arg(REDUCE_ARGMAX, x, 40, vector), 11);
    assert_int_equal(arg(REDUCE_ARGMIN, x, 40, vector), 0);
    for (int i = 0; i < 40; i++) x[i] = -INFINITY;
    assert_int_equal(arg(REDUCE_ARGMAX, x, 40, vector), 0);
    x[33] = NAN, x[18] = NAN, x[2] = INFINITY;
    assert_int_equal(arg(REDUCE_ARGMAX, x, 40, vector), 18);
    assert_int_equal(arg(REDUCE_ARGMIN, x, 40, vector), 18);
    for (int i = 0; i < 40; i++) x[i] = i % 2 ? 0.0f : -0.0f;
    assert_int_equal(arg(REDUCE_ARGMAX, x, 40, vector), 0);
  }
}

/* mean and a scaled copy of it: the epilogue reads an argument at the outer index, and writes twice. */
static void test_epilogue(void **s) {
  (void)s;
  struct arena *a = arena_create();
  struct kernel k = reduction(a, REDUCE_MAX, DT_I32, 2, 1, 1);
  k.nargs = 4, k.noutputs = 2;
  k.args[1] = (struct kernel_arg){DT_I32, STRIDE_ZERO, false};
  k.args[2] = k.args[3] = (struct kernel_arg){DT_I32, STRIDE_ZERO, true};
  k.epilogue = sprog_make(a);
  sval acc = s_arg(&k.epilogue, 4, DT_I32), row = s_arg(&k.epilogue, 1, DT_I32);
  k.epilogue_result[0] = acc;
  sval i = s_convert(&k.epilogue, DT_I32, s_index(&k.epilogue, 0));
  k.epilogue_result[1] = s_binary(&k.epilogue, S_ADD, s_binary(&k.epilogue, S_MUL, acc, row), i);
  int32_t x[] = {3, 9, -4, -7, -5, -6}, rows[] = {10, 100}, most[2], scaled[2];
  void *args[] = {x, rows, most, scaled};
  kernel_eval(&k, args, (int64_t[]){2, 3, 3, 1, 1, 0, 1, 0, 1, 0});
  assert_int_equal(most[0], 9);
  assert_int_equal(most[1], -5);
  assert_int_equal(scaled[0], 90);
  assert_int_equal(scaled[1], -499);
  struct kernel other = k;
  assert_true(kernel_equal(&k, &other));
  other.reduce = REDUCE_MIN;
  assert_false(kernel_equal(&k, &other));
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_integers),   cmocka_unit_test(test_floats), cmocka_unit_test(test_conversions),
      cmocka_unit_test(test_recording),  cmocka_unit_test(test_order),  cmocka_unit_test(test_live),
      cmocka_unit_test(test_hash),       cmocka_unit_test(test_map),    cmocka_unit_test(test_sum_order),
      cmocka_unit_test(test_identities), cmocka_unit_test(test_arg),    cmocka_unit_test(test_epilogue),
      cmocka_unit_test(test_rows)};
  return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}

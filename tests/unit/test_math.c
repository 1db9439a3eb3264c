/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of ir/scalar/math*.c and random.c, run by the interpreter, against libm in long double and the
 * published answers of Philox. Prints the largest error of each function in units of the last place. */
#include "base/arena.h"
#include "base/bits.h"
#include "ir/scalar/random.h"
#include "ir/scalar/scalar.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define ROW \
  64 /* samples at once: one by one the interpreter takes twice as long, and test_kernel compares the two */

static const double special[] = {0.0,
                                 -0.0,
                                 1,
                                 -1,
                                 2,
                                 -2,
                                 0.5,
                                 -0.5,
                                 3,
                                 -3,
                                 4,
                                 -4,
                                 7,
                                 -7,
                                 8,
                                 27,
                                 1e10,
                                 -1e10,
                                 1e-20,
                                 -1e-20,
                                 1.5,
                                 -1.5,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 DBL_MIN,
                                 -DBL_MIN,
                                 DBL_MAX,
                                 -DBL_MAX,
                                 FLT_MIN,
                                 -FLT_MIN,
                                 FLT_MAX,
                                 -FLT_MAX,
                                 0x1p-1074,
                                 -0x1p-1074,
                                 0x1p-149,
                                 -0x1p-149,
                                 0x1p-1040,
                                 0x1p-140,
                                 1e-300,
                                 1e300,
                                 0x1p53,
                                 0x1p52 + 1,
                                 709.78,
                                 709.79,
                                 710.47,
                                 710.48,
                                 -708.5,
                                 -745.1,
                                 -745.2,
                                 88.72,
                                 88.73,
                                 89.4,
                                 89.5,
                                 -87.4,
                                 -103.9,
                                 -104.0,
                                 1024,
                                 -1074,
                                 -1075,
                                 -1076,
                                 128,
                                 -149,
                                 -150,
                                 -151,
                                 0x1p38,
                                 0x1.fffffep37,
                                 0x1.921fb54442d18p0,
                                 0x1.921fb54442d18p1,
                                 0x1p-30,
                                 0x1p-60,
                                 0.41421356,
                                 0.99999999,
                                 26.5,
                                 27.3,
                                 10.05,
                                 3.92,
                                 -6,
                                 9.01,
                                 22,
                                 0x1p27,
                                 0x1p55,
                                 0x1.6ac5b262ca1ffp849};

static int samples = 15000; /* of each function; with an argument more, and a finer sweep */
static uint64_t sweep = 4 * 24989;

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void) { /* xorshift64* */
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * UINT64_C(0x2545f4914f6cdd1d);
}

static uint64_t bits_of(enum dtype d, double x) { return d == DT_F32 ? f32_bits((float)x) : f64_bits(x); }

static double value_of(enum dtype d, uint64_t bits) {
  return d == DT_F32 ? (double)f32_of_bits((uint32_t)bits) : f64_of_bits(bits);
}

/* x as a number of type d. volatile: GCC 12 loses the rounding where it makes a vector of two of these. */
static double rounded(enum dtype d, double x) {
  volatile float f = (float)x;
  return d == DT_F32 ? f : x;
}

/* The distance in units of the last place of `want`; huge where a NaN, an infinity or the sign of zero differs. */
static double ulp_error(enum dtype d, double got, long double want) {
  const double wrong = 1e9;
  int digits = d == DT_F32 ? FLT_MANT_DIG : DBL_MANT_DIG, low = d == DT_F32 ? FLT_MIN_EXP : DBL_MIN_EXP, e;
  double rounded = d == DT_F32 ? (float)want : (double)want, top = d == DT_F32 ? FLT_MAX : DBL_MAX;
  if (isnan(want)) return isnan(got) ? 0 : wrong;
  if (isnan(got)) return wrong;
  if (isinf(want)) return (long double)got == want ? 0 : wrong;
  if (isinf(got) || isinf(rounded)) return got == rounded || fabsl(want) > 0.9999995L * top ? 0 : wrong;
  if (got == 0 && !signbit(got) != !signbit(want)) return wrong;
  if (want == 0) return got == 0 ? 0 : wrong;
  frexpl(want, &e);
  if (e < low) e = low;
  return (double)(fabsl(got - want) / ldexpl(1, e - digits));
}

/* Numbers of many sizes: any bits, uniform in ranges around 0, close to 1. */
static double sample(enum dtype d, int i) {
  if ((size_t)i < COUNT(special)) return special[i];
  uint64_t r = next_random();
  double u = (double)(int64_t)r * 0x1p-63, x;
  switch (i % 8) {
  case 0:
  case 1: return value_of(d, r);
  case 2: x = u; break;
  case 3: x = u * 8; break;
  case 4: x = u * 128; break;
  case 5: x = u * 1024; break;
  case 6: x = 1 + u * 0.5; break;
  default: x = ldexp(u, (int)(next_random() % 80) - 40);
  }
  return x;
}

typedef sval function1(struct sprog *, sval);
typedef sval function2(struct sprog *, sval, sval);

struct recorded {
  struct sprog prog;
  sval result;
  uint64_t *values;
};

static struct recorded record(struct arena *a, function1 *f, function2 *g, enum dtype d) {
  struct recorded r = {.prog = sprog_make(a)};
  sval x = s_arg(&r.prog, 0, d);
  r.result = f ? f(&r.prog, x) : g(&r.prog, x, s_arg(&r.prog, 1, d));
  assert_int_equal(s_dtype(&r.prog, r.result), d);
  r.values = arena_new_array(a, (size_t)r.prog.count * ROW, uint64_t);
  return r;
}

/* Of `n` numbers x, and y where the function has two operands. */
static void call(struct recorded *r, enum dtype d, int n, const double *x, const double *y, double *out) {
  uint64_t args[2 * ROW] = {0};
  for (int i = 0; i < n; i++) args[i] = bits_of(d, x[i]), args[n + i] = bits_of(d, y[i]);
  sprog_eval_row(&r->prog, n, args, r->values);
  for (int i = 0; i < n; i++) out[i] = value_of(d, r->values[r->result * n + i]);
}

static const double bound[] = {[DT_F32] = 2, [DT_F64] = LDBL_MANT_DIG >= 64 ? 4 : 5};

struct worst {
  double error, x, y, got;
};

static void report(const char *name, enum dtype d, const struct recorded *r, struct worst w) {
  print_message("%-6s %s: %.3f ulp, %d instructions\n", name, dtype_name(d), w.error, r->prog.count);
  if (w.error > bound[d]) print_error("%s_%s(%a, %a) = %a\n", name, dtype_name(d), w.x, w.y, w.got);
  assert_true(w.error <= bound[d]);
}

static int at_most_a_row(int n) { return n < ROW ? n : ROW; }

static void check1(const char *name, function1 *f, long double (*want)(long double)) {
  for (enum dtype d = DT_F32; d <= DT_F64; d++) {
    struct arena *a = arena_create();
    struct recorded r = record(a, f, NULL, d);
    struct worst w = {0};
    for (int from = 0; from < samples; from += ROW) {
      double x[ROW], got[ROW];
      int n = at_most_a_row(samples - from);
      for (int i = 0; i < n; i++) x[i] = rounded(d, sample(d, from + i));
      call(&r, d, n, x, x, got);
      for (int i = 0; i < n; i++) {
        double error = ulp_error(d, got[i], want(x[i]));
        if (error > w.error) w = (struct worst){error, x[i], 0, got[i]};
      }
    }
    report(name, d, &r, w);
    arena_destroy(a);
  }
}

/* Pair number i: first each special number with each. */
static void sample2(enum dtype d, int i, double *x, double *y) {
  const int n = (int)COUNT(special);
  *x = i < n * n ? special[i / n] : sample(d, i);
  *y = i < n * n ? special[i % n] : sample(d, i / 8 + n);
  if (i >= n * n && i % 3 == 0 && fabs(*x) < 1e3) /* for pow: results in range from bases near 1 */
    *y = (double)(int64_t)next_random() * (d == DT_F32 ? 0x1p-57 : 0x1p-54) / (1e-9 + fabs(log2(fabs(*x))));
  *x = rounded(d, *x);
  *y = rounded(d, *y);
}

static void check2(const char *name, function2 *f, long double (*want)(long double, long double)) {
  for (enum dtype d = DT_F32; d <= DT_F64; d++) {
    struct arena *a = arena_create();
    struct recorded r = record(a, NULL, f, d);
    struct worst w = {0};
    const int pairs = samples + (int)COUNT(special) * (int)COUNT(special);
    for (int from = 0; from < pairs; from += ROW) {
      double x[ROW], y[ROW], got[ROW];
      int n = at_most_a_row(pairs - from);
      for (int i = 0; i < n; i++) sample2(d, from + i, &x[i], &y[i]);
      call(&r, d, n, x, y, got);
      for (int i = 0; i < n; i++) {
        double error = ulp_error(d, got[i], want(x[i], y[i]));
        if (error > w.error) w = (struct worst){error, x[i], y[i], got[i]};
      }
    }
    report(name, d, &r, w);
    arena_destroy(a);
  }
}

#define ONE(f)                     \
  static void test_##f(void **s) { \
    (void)s;                       \
    check1(#f, m_##f, f##l);       \
  }
#define TWO(f)                     \
  static void test_##f(void **s) { \
    (void)s;                       \
    check2(#f, m_##f, f##l);       \
  }
/* clang-format off */
ONE(exp) ONE(exp2) ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p) ONE(sin) ONE(cos) ONE(tan) ONE(asin)
ONE(acos) ONE(atan) ONE(sinh) ONE(cosh) ONE(tanh) ONE(asinh) ONE(acosh) ONE(atanh) ONE(erf) ONE(erfc) ONE(cbrt)
TWO(atan2) TWO(pow) TWO(hypot) TWO(copysign)
    /* clang-format on */

    /* What floats far from each other turn up in: the whole range of f32 at even steps. */
    static void test_f32_sweep(void **s) {
  (void)s;
  static const struct {
    const char *name;
    function1 *f;
    double (*want)(double);
  } hot[] = {{"exp", m_exp, exp},    {"log", m_log, log},    {"tanh", m_tanh, tanh}, {"erf", m_erf, erf},
             {"exp2", m_exp2, exp2}, {"log2", m_log2, log2}, {"sin", m_sin, sin}};
  for (size_t k = 0; k < COUNT(hot); k++) {
    struct arena *a = arena_create();
    struct recorded r = record(a, hot[k].f, NULL, DT_F32);
    double worst = 0;
    for (uint64_t bits = k; bits < UINT64_C(1) << 32;) {
      double x[ROW], got[ROW];
      int n = 0;
      for (; n < ROW && bits < UINT64_C(1) << 32; bits += sweep) x[n++] = value_of(DT_F32, bits);
      call(&r, DT_F32, n, x, x, got);
      for (int i = 0; i < n; i++) {
        double error = ulp_error(DT_F32, got[i], hot[k].want(x[i]));
        if (error > worst) worst = error;
      }
    }
    print_message("%-6s f32 sweep: %.3f ulp\n", hot[k].name, worst);
    assert_true(worst <= bound[DT_F32]);
    arena_destroy(a);
  }
}

/* ---- random numbers ---- */

static void check_philox(const uint32_t counter[4], const uint32_t key[2], const uint32_t want[4]) {
  struct arena *a = arena_create();
  struct sprog p = sprog_make(a);
  sval c[4], k[2];
  uint64_t args[6];
  for (int i = 0; i < 4; i++) c[i] = s_arg(&p, i, DT_I32), args[i] = counter[i];
  for (int i = 0; i < 2; i++) k[i] = s_arg(&p, 4 + i, DT_I32), args[4 + i] = key[i];
  random_philox(&p, c, k);
  uint64_t *values = arena_new_array(a, (size_t)p.count, uint64_t);
  sprog_eval(&p, args, NULL, NULL, values);
  for (int i = 0; i < 4; i++) assert_int_equal(values[c[i]], want[i]);
  arena_destroy(a);
}

/* The known answers that come with the paper's library, Random123. */
static void test_philox(void **s) {
  (void)s;
  check_philox((uint32_t[4]){0}, (uint32_t[2]){0},
               (uint32_t[4]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  check_philox((uint32_t[4]){~0u, ~0u, ~0u, ~0u}, (uint32_t[2]){~0u, ~0u},
               (uint32_t[4]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  check_philox((uint32_t[4]){0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
               (uint32_t[2]){0xa4093822, 0x299f31d0},
               (uint32_t[4]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

static void check_moments(enum dtype d, bool normal, uint64_t seed, uint64_t stream) {
  enum { N = 40000 };
  struct arena *a = arena_create();
  struct sprog p = sprog_make(a);
  sval in[4];
  for (int i = 0; i < 4; i++) in[i] = s_arg(&p, i, DT_I64);
  sval r = normal ? m_random_normal(&p, d, in[0], in[1], in[2], in[3])
                  : m_random_uniform(&p, d, in[0], in[1], in[2], in[3]);
  uint64_t *values = arena_new_array(a, (size_t)p.count * ROW, uint64_t);
  double sum = 0, squares = 0, fourth = 0, neighbours = 0, last = 0, mean = normal ? 0 : 0.5;
  for (int i = 0; i < N; i++) {
    if (i % ROW == 0) {
      uint64_t args[4 * ROW];
      for (int k = 0; k < ROW; k++)
        args[k] = seed, args[ROW + k] = stream, args[2 * ROW + k] = 3, args[3 * ROW + k] = (uint64_t)(i + k);
      sprog_eval_row(&p, ROW, args, values);
    }
    double x = value_of(d, values[r * ROW + i % ROW]);
    assert_true(isfinite(x));
    if (!normal) assert_true(x >= 0 && x < 1);
    x -= mean;
    sum += x, squares += x * x, fourth += x * x * x * x, neighbours += x * last;
    last = x;
  }
  double variance = squares / N, want = normal ? 1 : 1.0 / 12, deviation = sqrt(want / N);
  print_message("%s %s: %d instructions, mean %+.5f, variance %.5f\n", normal ? "normal" : "uniform",
                dtype_name(d), p.count, sum / N + mean, variance);
  assert_true(fabs(sum / N) < 4 * deviation);
  assert_true(fabs(variance / want - 1) < 4 * sqrt(2.0 / N));
  assert_true(fabs(neighbours / N / want) < 4 / sqrt(N));
  assert_true(fabs(fourth / N / (want * want) - (normal ? 3 : 1.8)) < 4 * sqrt(96.0 / N));
  arena_destroy(a);
}

static void test_moments(void **s) {
  (void)s;
  for (enum dtype d = DT_F32; d <= DT_F64; d++)
    for (int normal = 0; normal < 2; normal++) {
      check_moments(d, normal, 1, 7);
      check_moments(d, normal, 42, UINT64_C(0x123456789abcdef));
    }
}

/* Element, step, stream and seed all matter, in their high halves too. */
static void test_counters(void **s) {
  (void)s;
  struct arena *a = arena_create();
  struct sprog p = sprog_make(a);
  sval in[4];
  for (int i = 0; i < 4; i++) in[i] = s_arg(&p, i, DT_I64);
  sval r = m_random_uniform(&p, DT_F64, in[0], in[1], in[2], in[3]);
  uint64_t *values = arena_new_array(a, (size_t)p.count, uint64_t), seen[9];
  for (int i = 0; i < 9; i++) {
    uint64_t args[4] = {5, 6, 7, 8};
    if (i) args[(i - 1) / 2] ^= i % 2 ? 1 : UINT64_C(1) << 40;
    sprog_eval(&p, args, NULL, NULL, values);
    seen[i] = values[r];
    for (int j = 0; j < i; j++) assert_true(seen[j] != seen[i]);
  }
  arena_destroy(a);
}

/* test_math [longer] */
int main(int argc, char **argv) {
  (void)argv;
  if (argc > 1) samples *= 4, sweep /= 4;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_exp),    cmocka_unit_test(test_exp2),     cmocka_unit_test(test_expm1),
      cmocka_unit_test(test_log),    cmocka_unit_test(test_log2),     cmocka_unit_test(test_log10),
      cmocka_unit_test(test_log1p),  cmocka_unit_test(test_sin),      cmocka_unit_test(test_cos),
      cmocka_unit_test(test_tan),    cmocka_unit_test(test_asin),     cmocka_unit_test(test_acos),
      cmocka_unit_test(test_atan),   cmocka_unit_test(test_atan2),    cmocka_unit_test(test_sinh),
      cmocka_unit_test(test_cosh),   cmocka_unit_test(test_tanh),     cmocka_unit_test(test_asinh),
      cmocka_unit_test(test_acosh),  cmocka_unit_test(test_atanh),    cmocka_unit_test(test_erf),
      cmocka_unit_test(test_erfc),   cmocka_unit_test(test_pow),      cmocka_unit_test(test_cbrt),
      cmocka_unit_test(test_hypot),  cmocka_unit_test(test_copysign), cmocka_unit_test(test_f32_sweep),
      cmocka_unit_test(test_philox), cmocka_unit_test(test_moments),  cmocka_unit_test(test_counters)};
  return cmocka_run_group_tests_name("math", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Attention has the same bits by vectors of every width that this machine has, of zeros, NaN, Inf and numbers whose
 * sums overflow, too. */
#include "kernels/cpu/attention.h"

#include "tests/support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Which are tried. */
static int first_case = 0, end_case = 100;

struct operands {
  void *all[8]; /* q, k, v, perhaps y and dy, perhaps the mask, the result, memory */
  size_t result;
  int at;
};

static double number(struct rng *r, int kind) {
  static const double odd[] = {
      (double)INFINITY, -(double)INFINITY, (double)NAN, 0, -0.0, 3e38, -2e38, 1e-42, 1e20};
  bool is_odd = kind == 1 ? rng_chance(r, 1) : kind == 2 && rng_chance(r, 10);
  return is_odd ? odd[kind == 2 ? 3 + rng_below(r, 6) : rng_below(r, 9)] : rng_uniform(r, -2, 2);
}

static void *make(struct rng *r, int64_t count, bool f32, int kind) {
  void *data = calloc((size_t)count + 1, sizeof(double));
  assert_non_null(data);
  for (int64_t i = 0; i < count; i++) {
    double x = number(r, kind);
    if (f32)
      ((float *)data)[i] = (float)x;
    else
      ((double *)data)[i] = x;
  }
  return data;
}

static struct attention_numbers sizes(struct rng *r) {
  struct attention_numbers s = {.batch = 1 + rng_below(r, 2), .heads = 1 + rng_below(r, 2)};
  s.queries = 1 + rng_below(r, 100), s.keys = 1 + rng_below(r, 100);
  s.size = 1 + rng_below(r, 20), s.values = 1 + rng_below(r, 20);
  s.causal = rng_chance(r, 50), s.masked = rng_chance(r, 40);
  s.mask_step[3] = 1, s.mask_step[2] = s.keys;
  s.end = s.batch * s.heads;
  return s;
}

static struct operands operands_of(struct rng *r, const struct attention_numbers *s, bool f32,
                                   bool gradient) {
  struct operands o = {.at = 0};
  int kind = rng_below(r, 3);
  int64_t rows = s->batch * s->heads, q = rows * s->queries * s->size, k = rows * s->keys * s->size,
          v = rows * s->keys * s->values, y = rows * s->queries * s->values;
  o.all[o.at++] = make(r, q, f32, kind), o.all[o.at++] = make(r, k, f32, kind),
  o.all[o.at++] = make(r, v, f32, kind);
  if (gradient) o.all[o.at++] = make(r, y, f32, kind), o.all[o.at++] = make(r, y, f32, kind);
  if (s->masked) {
    uint8_t *mask = calloc((size_t)(s->queries * s->keys), 1);
    assert_non_null(mask);
    for (int64_t i = 0; i < s->queries * s->keys; i++) mask[i] = rng_chance(r, 70);
    o.all[o.at++] = mask;
  }
  o.result = (size_t)(gradient ? q + k + v : y) * (f32 ? sizeof(float) : sizeof(double));
  return o;
}

/* NaN are alike. */
static void same(const void *a, const void *b, size_t bytes, bool f32, int number_of) {
  for (size_t i = 0; i < bytes / (f32 ? sizeof(float) : sizeof(double)); i++) {
    double x = f32 ? (double)((const float *)a)[i] : ((const double *)a)[i];
    double y = f32 ? (double)((const float *)b)[i] : ((const double *)b)[i];
    if (memcmp(&x, &y, sizeof x) != 0 && !(isnan(x) && isnan(y)))
      fail_msg("case %d, element %zu: %a and %a", number_of, i, x, y);
  }
}

static void compare(leaf_fn *const *widths, int count, bool f32, bool gradient) {
  for (int i = first_case; i < end_case; i++) {
    struct rng r = {500 + (uint64_t)i};
    struct attention_numbers s = sizes(&r);
    struct operands o = operands_of(&r, &s, f32, gradient);
    size_t memory = gradient ? attention_gradient_scratch(&s) : attention_scratch(&s);
    void *first = NULL;
    for (int w = 0; w < count; w++) {
      void *result = malloc(o.result + 1);
      o.all[o.at] = result, o.all[o.at + 1] = malloc(memory);
      assert_true(result && o.all[o.at + 1]);
      memset(result, 0x55, o.result);
      memset(o.all[o.at + 1], w, memory);
      widths[w](o.all, &s);
      if (first) same(first, result, o.result, f32, i);
      free(o.all[o.at + 1]);
      if (first)
        free(result);
      else
        first = result;
    }
    free(first);
    for (int k = 0; k < o.at; k++) free(o.all[k]);
  }
}

/* Whether there is more than one width to compare. */
static bool has_vectors(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

#define DEFINE_TEST(name, member, f32, gradient)                            \
  static void name(void **state) {                                          \
    leaf_fn *widths[8];                                                     \
    int count = attention_widths_here();                                    \
    (void)state;                                                            \
    assert_true(count > 1 || !has_vectors());                               \
    if (count < 2) skip();                                                  \
    for (int i = 0; i < count; i++) widths[i] = attention_widths[i].member; \
    compare(widths, count, f32, gradient);                                  \
  }
DEFINE_TEST(single, f32, true, false)
DEFINE_TEST(wide, f64, false, false)
DEFINE_TEST(single_gradient, gradient_f32, true, true)
DEFINE_TEST(wide_gradient, gradient_f64, false, true)

/* test_widths [FIRST END] */
int main(int argc, char **argv) {
  if (argc > 2) first_case = atoi(argv[1]), end_case = atoi(argv[2]);
  const struct CMUnitTest tests[] = {cmocka_unit_test(single), cmocka_unit_test(wide),
                                     cmocka_unit_test(single_gradient), cmocka_unit_test(wide_gradient)};
  return cmocka_run_group_tests_name("widths", tests, NULL, NULL);
}

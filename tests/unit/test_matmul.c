/* SPDX-License-Identifier: Apache-2.0 */
/* Products on the CPU that generated code does not compute, against a naive loop. */
#include "kernels/cpu/amx.h"
#include "kernels/cpu/bf16.h"
#include "runtime/cpu/matmul.h"
#include "runtime/cpu/matmul_units.h"
#include "runtime/cpu/onednn.h"
#include "tests/support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct rng rng;

static double number_at(enum dtype d, const void *p, int64_t i) {
  switch (d) {
  case DT_F32: return ((const float *)p)[i];
  case DT_F64: return ((const double *)p)[i];
  case DT_I32: return ((const int32_t *)p)[i];
  case DT_I64: return (double)((const int64_t *)p)[i];
  default: return ((const uint8_t *)p)[i];
  }
}

static void set_number(enum dtype d, void *p, int64_t i, int v) {
  switch (d) {
  case DT_F32: ((float *)p)[i] = (float)v; break;
  case DT_F64: ((double *)p)[i] = v; break;
  case DT_I32: ((int32_t *)p)[i] = v; break;
  case DT_I64: ((int64_t *)p)[i] = v; break;
  default: ((uint8_t *)p)[i] = (uint8_t)v; break;
  }
}

/* Small integers: every sum is exact in every dtype, whatever the order. */
static void check_product(struct arena *arena, const struct product *mm) {
  enum dtype d = mm->dtype;
  int64_t na = mm->batch * mm->m * mm->k, nb = mm->batch * mm->k * mm->n, nc = mm->batch * mm->m * mm->n;
  int limit = d == DT_U8 ? 3 : 9;
  char *a = arena_array(arena, (size_t)na, 8), *b = arena_array(arena, (size_t)nb, 8);
  char *c = arena_array(arena, (size_t)nc + 1, 8);
  for (int64_t i = 0; i < na; i++) set_number(d, a, i, rng_below(&rng, limit) - (d == DT_U8 ? 0 : limit / 2));
  for (int64_t i = 0; i < nb; i++) set_number(d, b, i, rng_below(&rng, limit) - (d == DT_U8 ? 0 : limit / 2));
  for (int64_t i = 0; i <= nc; i++) set_number(d, c, i, 77);
  struct matmul_units *units = NULL;
  uint16_t *halves[] = {arena_new_array(arena, (size_t)na + 1, uint16_t),
                        arena_new_array(arena, (size_t)nb + 1, uint16_t)};
  if (mm->bf16) assert_true(matmul_units_create(mm, &units));
  for (int64_t i = 0, size = dtype_size(d); i < mm->batch; i++) {
    const char *x = a + i * mm->m * mm->k * size, *y = b + i * mm->k * mm->n * size;
    char *z = c + i * mm->m * mm->n * size;
    int64_t cut = rng_below(&rng, mm->m + 1);
    if (units) {
      bf16_pack((const float *)(const void *)x, halves[0], mm->m * mm->k);
      bf16_pack((const float *)(const void *)y, halves[1], mm->k * mm->n);
      assert_true(matmul_units_run(units, halves[0], halves[1], (float *)(void *)z));
    } else {
      matmul_rows(mm, i, cut, mm->m, a, b, c);
      matmul_rows(mm, i, 0, cut, a, b, c);
    }
  }
  matmul_units_destroy(units);
  assert_true(number_at(d, c, nc) == 77);
  for (int64_t at = 0; at < nc; at++) {
    int64_t batch = at / (mm->m * mm->n), i = at / mm->n % mm->m, j = at % mm->n;
    double sum = 0;
    for (int64_t p = 0; p < mm->k; p++) {
      double x = number_at(d, a, batch * mm->m * mm->k + (mm->transpose_a ? p * mm->m + i : i * mm->k + p));
      double y = number_at(d, b, batch * mm->k * mm->n + (mm->transpose_b ? j * mm->k + p : p * mm->n + j));
      sum += x * y;
    }
    if (d == DT_U8) sum = (uint8_t)(int64_t)sum;
    assert_true(number_at(d, c, at) == sum);
  }
}

static void products(void **state) {
  static const int64_t size[] = {0, 1, 3, 4, 16, 17, 70, 300};
  static const enum dtype dtypes[] = {DT_F32, DT_F64, DT_I32, DT_I64, DT_U8};
  (void)state;
  rng.state = 3;
  onednn_use_one_thread();
  for (int i = 0; i < 400; i++) {
    struct arena *a = arena_create();
    struct product mm = {.dtype = dtypes[i % 5],
                         .batch = rng_below(&rng, 4),
                         .m = size[rng_below(&rng, 7)],
                         .n = size[rng_below(&rng, 7)],
                         .k = size[rng_below(&rng, 8)],
                         .transpose_a = rng_chance(&rng, 50),
                         .transpose_b = rng_chance(&rng, 50)};
    mm.bf16 = mm.dtype == DT_F32 && rng_chance(&rng, 50); /* the small integers are bfloat16 values */
    check_product(a, &mm);
    arena_destroy(a);
  }
}

/* ---- AMX ---- */

static float widened(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return fpclassify(f) == FP_SUBNORMAL ? copysignf(0, f) : f;
}

static float flushed(float x) { return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x; }

/* As amx.h says. */
static float element(const struct amx_product *p, const uint16_t *a, const uint16_t *b, int64_t i,
                     int64_t j) {
  float sum = 0;
  for (int64_t k = 0; k < p->k; k += 32) {
    float chain[2] = {0, 0};
    for (int64_t l = k; l < k + 32 && l < p->k; l++)
      chain[l % 2] =
          flushed(fmaf(widened(a[p->transpose_a ? l * p->a_row + i : i * p->a_row + l]),
                       widened(b[p->transpose_b ? j * p->b_row + l : l * p->b_row + j]), chain[l % 2]));
    sum = flushed(sum + flushed(chain[0] + chain[1]));
  }
  return sum;
}

/* Of all magnitudes, with zeros of both signs, subnormal numbers, Inf and NaN now and then where `wild` holds. */
static uint16_t bf16_number(bool wild) {
  static const uint16_t odd[] = {0, 0x8000, 1, 0x807f, 0x7f80, 0xff80, 0x7fc0, 0x7f7f, 0x0080};
  if (rng_chance(&rng, wild ? 4 : 0)) return odd[rng_below(&rng, sizeof odd / sizeof *odd)];
  return (uint16_t)((rng_chance(&rng, 50) ? 0x8000 : 0) | (118 + rng_below(&rng, 20)) << 7 |
                    rng_below(&rng, 128));
}

/* To the last bit, and nothing beside C is written, nor read that is no operand. */
static void tiles(void **state) {
  static const int64_t size[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 65, 130};
  (void)state;
  if (!amx_can()) skip();
  rng.state = 5;
  void *room = aligned_alloc(64, AMX_ROOM);
  assert_non_null(room);
  for (int i = 0; i < 60; i++) {
    struct arena *arena = arena_create();
    struct amx_product p = {.m = size[rng_below(&rng, 13)],
                            .n = i == 20 ? 1040 : size[rng_below(&rng, 13)],
                            .k = i % 10 == 0 ? 500 + rng_below(&rng, 60) : size[rng_below(&rng, 13)],
                            .transpose_a = rng_chance(&rng, 50),
                            .transpose_b = rng_chance(&rng, 50)};
    if (i == 20) p.m = 35, p.k = 40;
    if (i == 40) p.m = 270, p.n = 17;
    p.a_row = (p.transpose_a ? p.m : p.k) + rng_below(&rng, 3);
    p.b_row = (p.transpose_b ? p.k : p.n) + rng_below(&rng, 3);
    p.c_row = p.n + rng_below(&rng, 3);
    int64_t na = (p.transpose_a ? p.k : p.m) * p.a_row, nb = (p.transpose_b ? p.n : p.k) * p.b_row,
            nc = p.m * p.c_row;
    uint16_t *a = arena_new_array(arena, (size_t)na + 1, uint16_t),
             *b = arena_new_array(arena, (size_t)nb + 1, uint16_t);
    float *c = arena_new_array(arena, (size_t)nc + 1, float);
    for (int64_t l = 0; l < na; l++) a[l] = bf16_number(i % 3 == 0);
    for (int64_t l = 0; l < nb; l++) b[l] = bf16_number(i % 3 == 0);
    for (int64_t l = 0; l <= nc; l++) c[l] = 77;
    struct amx_product part = p;
    int64_t packed_bytes = amx_packed_count(p.n, p.k) * (int64_t)sizeof *a;
    uint16_t *packed = aligned_alloc(64, (size_t)(packed_bytes + 64));
    assert_non_null(packed);
    if (i % 2) {
      amx_pack(&p, b, packed);
      part.packed = packed;
      part.packed_n = p.n;
    }
    /* The whole, or two parts of its columns. */
    int64_t half = i % 3 == 1 && p.n > 32 ? p.n / 64 * 32 : 0;
    part.n -= half;
    part.packed_left = half;
    amx_multiply(&part, a, b + half * (p.transpose_b ? p.b_row : 1), c + half, room);
    part.n = half;
    part.packed_left = 0;
    if (half) amx_multiply(&part, a, b, c, room);
    free(packed);
    for (int64_t l = 0; l <= nc; l++) {
      bool inside = l < nc && l % p.c_row < p.n;
      float wanted = inside ? element(&p, a, b, l / p.c_row, l % p.c_row) : 77;
      if (isnan(wanted) ? !isnan(c[l]) : memcmp(&wanted, &c[l], sizeof wanted) != 0)
        fail_msg("%lldx%lldx%lld %d %d, element %lld: %a instead of %a", (long long)p.m, (long long)p.n,
                 (long long)p.k, p.transpose_a, p.transpose_b, (long long)l, (double)c[l], (double)wanted);
    }
    arena_destroy(arena);
  }
  free(room);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(tiles)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

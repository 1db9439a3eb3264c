/* SPDX-License-Identifier: Apache-2.0 */
/* Large products, whose operands are packed and whose sums wait in blocks: the elements of a part of C are, to the last
 * bit, those of the small product of the rows and columns that make them, which test_order.c compares to the
 * definition. Where B is packed before, for all blocks of C, all of it is as without. */
#include "base/arena.h"
#include "base/integer.h"
#include "base/line.h"
#include "runtime/cpu/gemm.h"
#include "tests/support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct operands {
  const void *a, *b; /* dense */
  struct product size;
};

static struct rng rng = {1};
static int packed_products;
static struct arena *arena;
static struct cpu_jit *jit;
static struct diags diags;

static void *numbers(enum dtype d, int64_t count) {
  void *x = arena_alloc(arena, (size_t)((count + 1) * dtype_size(d)));
  for (int64_t i = 0; i < count; i++) {
    double v = rng_uniform(&rng, -1, 1);
    if (d == DT_F32)
      ((float *)x)[i] = (float)v;
    else
      ((double *)x)[i] = v;
  }
  return x;
}

/* With B packed before, in parts, the last one first; C in two parts, too. */
static void check_packed(const struct gemm *g, const struct operands *o, const char *want) {
  size_t size = gemm_packed_size(g), bytes = (size_t)(o->size.m * o->size.n * dtype_size(o->size.dtype));
  if (size == 0) return;
  char *packed = aligned_alloc(CACHE_LINE, size_round_up(size, CACHE_LINE)), *c = malloc(bytes);
  assert_true(packed && c);
  for (int64_t end = gemm_pack_units(g), first; end > 0; end = first) {
    first = rng_below(&rng, end);
    gemm_pack(g, 0, first, end, o->b, packed);
  }
  struct gemm_block below = {.packed = packed}, above;
  gemm_units(g, &below.bottom, &below.right);
  above = below, above.bottom = below.top = rng_below(&rng, below.bottom + 1);
  gemm_run(g, &above, o->a, o->b, c);
  gemm_run(g, &below, o->a, o->b, c);
  if (memcmp(c, want, bytes) != 0)
    fail_msg("%lldx%lldx%lld %d %d: another product with B packed before", (long long)o->size.m,
             (long long)o->size.n, (long long)o->size.k, o->size.transpose_a, o->size.transpose_b);
  free(packed), free(c);
  packed_products++;
}

static void *multiply(const struct operands *o) {
  const struct gemm *g = gemm_create(jit, arena, &o->size, NULL, false);
  struct gemm_block all = {0};
  void *c = arena_alloc(arena, (size_t)(o->size.m * o->size.n * dtype_size(o->size.dtype)));
  assert_true(cpu_jit_finish(jit, &diags));
  gemm_units(g, &all.bottom, &all.right);
  gemm_run(g, &all, o->a, o->b, c);
  check_packed(g, o, c);
  return c;
}

/* `count` rows from `first` on of a matrix of so many rows and columns; transposed: its transpose lies there. */
static void *rows_of(const void *x, int64_t rows, int64_t columns, bool transposed, int64_t first,
                     int64_t count, int64_t bytes) {
  char *out = arena_alloc(arena, (size_t)(count * columns * bytes));
  for (int64_t i = 0; i < count; i++)
    for (int64_t j = 0; j < columns; j++) {
      int64_t at = transposed ? j * rows + first + i : (first + i) * columns + j;
      memcpy(out + (i * columns + j) * bytes, (const char *)x + at * bytes, (size_t)bytes);
    }
  return out;
}

static void check_part(const struct operands *o, const char *c, int64_t top, int64_t left) {
  const struct product *p = &o->size;
  int64_t bytes = dtype_size(p->dtype), height = p->m - top < 5 ? p->m - top : 5,
          width = p->n - left < 70 ? p->n - left : 70;
  struct operands part = {.size = {.dtype = p->dtype, .batch = 1, .m = height, .n = width, .k = p->k}};
  part.size.transpose_b = true;
  part.a = rows_of(o->a, p->m, p->k, p->transpose_a, top, height, bytes);
  part.b = rows_of(o->b, p->n, p->k, !p->transpose_b, left, width, bytes);
  const char *want = multiply(&part);
  for (int64_t i = 0; i < height; i++)
    if (memcmp(want + i * width * bytes, c + ((top + i) * p->n + left) * bytes, (size_t)(width * bytes)) != 0)
      fail_msg("%lldx%lldx%lld %d %d: row %lld, from column %lld on", (long long)p->m, (long long)p->n,
               (long long)p->k, p->transpose_a, p->transpose_b, (long long)(top + i), (long long)left);
}

static void large(void **state) {
  static const int64_t m[] = {1, 13, 29, 45, 281, 300, 530}, n[] = {16, 100, 512, 1024, 1030, 2100},
                       k[] = {40, 256, 300, 512, 600, 1024, 2060};
  (void)state;
  if (!gemm_can()) skip();
  for (int i = 0; i < 60; i++) {
    arena = arena_create();
    diags_init(&diags, arena);
    assert_non_null(jit = cpu_jit_create(&diags));
    enum dtype d = i % 4 ? DT_F32 : DT_F64;
    struct operands o = {
        .size = {.dtype = d, .batch = 1, .m = m[rng_below(&rng, 6)], .n = n[rng_below(&rng, 6)]}};
    o.size.k = k[rng_below(&rng, 7)];
    if (i < 4) o.size.m = 281 + i, o.size.n = 1030, o.size.k = i % 2 ? 2060 : 300;
    /* C is cut into blocks, however many registers there are. */
    if (i == 5) o.size.m = 530, o.size.n = 1030, o.size.k = 16400;
    o.size.transpose_a = rng_chance(&rng, 50), o.size.transpose_b = rng_chance(&rng, 30);
    o.a = numbers(d, o.size.m * o.size.k), o.b = numbers(d, o.size.k * o.size.n);
    const char *c = multiply(&o);
    for (int part = 0; part < 8; part++) {
      int64_t top = part < 4 ? part % 2 * (o.size.m - 1) : rng_below(&rng, o.size.m);
      int64_t left = part < 4 ? part / 2 * (o.size.n - 1) : rng_below(&rng, o.size.n);
      check_part(&o, c, top, left);
    }
    cpu_jit_destroy(jit);
    arena_destroy(arena);
  }
  assert_true(packed_products > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The code of every tile that a product may use, for each width of vectors that this machine has, beside fma in a naive
 * loop: to the bit, and nothing is written but C. */
#include "runtime/cpu/host.h"
#include "runtime/cpu/object.h"
#include "runtime/cpu/tile.h"
#include "tests/support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ROWS = 24, MOST_COLUMNS = 96, MOST_K = 9, APART = 3, RUNS = 3, CELLS = 4096, EDGE = 8 };

static struct rng rng;

/* Zeros of both signs, equal numbers, infinities, NaN, and numbers whose products are rounded. */
static double some_number(void) {
  static const double special[] = {0.0, -0.0, 1, 1, -1, INFINITY, -INFINITY, NAN, 1e30, -1e-30};
  int i = rng_below(&rng, 60);
  return i < 10 ? special[i] : (rng_below(&rng, 2000001) - 1000000) / 777777.0;
}

static double get(enum dtype d, const void *p, int64_t i) {
  return d == DT_F32 ? (double)((const float *)p)[i] : ((const double *)p)[i];
}

static void set(enum dtype d, void *p, int64_t i, double v) {
  if (d == DT_F32)
    ((float *)p)[i] = (float)v;
  else
    ((double *)p)[i] = v;
}

static double chain(enum dtype d, double a, double b, double sum) {
  return d == DT_F32 ? (double)fmaf((float)a, (float)b, (float)sum) : fma(a, b, sum);
}

static double plus(enum dtype d, double x, double y) {
  return d == DT_F32 ? (double)((float)x + (float)y) : x + y;
}

static bool same(double x, double y) {
  return (isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y));
}

/* Of numbers, whichever they are: A and B are at some places of the pool, C is copied from one. */
struct room {
  double pool[2][2 * CELLS], c[CELLS], expected[CELLS];
};

static const char *some_numbers(const struct room *m, enum dtype d) {
  return (const char *)m->pool[d == DT_F64] + rng_below(&rng, CELLS) * dtype_size(d);
}

/* C begins EDGE numbers into its room; rows of A, or columns, and those of B and C lie APART further than they must. */
static void check_call(const struct tile *t, tile_fn *fn, struct room *m, bool goes_on, bool add) {
  int64_t size = dtype_size(t->dtype), columns = (t->vectors - 1) * t->lanes + (t->last ? t->last : t->lanes),
          nruns = 1 + rng_below(&rng, RUNS), a_step = (t->columns ? t->rows : nruns * MOST_K) + APART,
          b_step = columns + APART, c_step = columns + APART;
  struct tile_run runs[RUNS] = {{0}};
  for (int64_t i = 0; i < nruns; i++) {
    runs[i] = (struct tile_run){.count = 1 + rng_below(&rng, MOST_K)};
    runs[i].a = i * MOST_K * (t->columns ? a_step : 1) * size;
    runs[i].b = (nruns - 1 - i) * MOST_K * b_step * size;
  }
  const char *a = some_numbers(m, t->dtype), *b = some_numbers(m, t->dtype);
  memcpy(m->c, some_numbers(m, t->dtype), (size_t)(CELLS * size));
  memcpy(m->expected, m->c, (size_t)(CELLS * size));
  for (int64_t r = 0; r < t->rows; r++)
    for (int64_t j = 0; j < columns; j++) {
      int64_t at = EDGE + r * c_step + j;
      double before = get(t->dtype, m->c, at), sum = goes_on ? before : 0;
      for (int64_t i = 0; i < nruns; i++)
        for (int64_t k = 0; k < runs[i].count; k++)
          sum = chain(t->dtype,
                      get(t->dtype, a, runs[i].a / size + (t->columns ? k * a_step + r : r * a_step + k)),
                      get(t->dtype, b, runs[i].b / size + k * b_step + j), sum);
      if (add) sum = plus(t->dtype, before, sum);
      if (!add && t->positive) sum = plus(t->dtype, sum, 0);
      set(t->dtype, m->expected, at, sum);
    }
  /* Any address: to ask for memory reads nothing. */
  const void *somewhere = (const void *)(uintptr_t)rng_below(&rng, 1 << 30);
  fn(&(struct tile_call){.a = a,
                         .b = b,
                         .c = (char *)m->c + EDGE * size,
                         .runs = runs,
                         .nruns = nruns,
                         .a_step = a_step * size,
                         .b_step = b_step * size,
                         .c_step = c_step * size,
                         .a_ahead = 8 * a_step * size,
                         .b_ahead = 8 * b_step * size,
                         .c_ahead = somewhere,
                         .goes_on = goes_on,
                         .add = add});
  for (int64_t i = 0; i < CELLS; i++)
    if (!same(get(t->dtype, m->c, i), get(t->dtype, m->expected, i)))
      fail_msg("%s, %d rows, %d vectors of %d, last %d, columns %d, asks %d, goes on %d, add %d: number "
               "%d is %g, not %g",
               dtype_name(t->dtype), t->rows, t->vectors, t->lanes, t->last, t->columns, t->asks, goes_on,
               add, (int)i, get(t->dtype, m->c, i), get(t->dtype, m->expected, i));
}

static void check_tile(const struct tile *t, struct room *m) {
  struct arena *a = arena_create();
  struct str code = tile_assemble(a, t);
  const char *base;
  struct object *o = object_of_code(code.data, code.len, &base);
  assert_non_null(o);
  tile_fn *fn;
  memcpy(&fn, &base, sizeof fn);
  for (int how = 0; how < 4; how++) check_call(t, fn, m, how & 1, how & 2);
  object_unload(o);
  arena_destroy(a);
}

/* Which of the tiles is one that gemm.c asks for. */
static bool fits(const struct tile *t, int registers) {
  int most = registers < 32 ? 12 : 28, sums = t->rows * t->vectors;
  if (t->vectors > 2) return t->rows <= 2 && sums <= 12;
  if (t->vectors == 1 && !t->columns && t->rows > 16) return false;
  return sums <= most;
}

static void check_width(int bytes, int registers, struct room *m) {
  for (int wide = 0; wide < 2; wide++)
    for (int rows = 1; rows <= MOST_ROWS; rows++)
      for (int vectors = 1; vectors <= MAX_TILE_VECTORS; vectors++)
        for (int lanes = bytes / (wide ? 8 : 4), last = 0; last < lanes; last++)
          for (int how = 0; how < 4; how++) {
            struct tile t = {.dtype = wide ? DT_F64 : DT_F32,
                             .rows = rows,
                             .vectors = vectors,
                             .lanes = lanes,
                             .columns = how & 1,
                             .asks = how & 2,
                             .positive = rng_below(&rng, 2),
                             .last = last};
            if (fits(&t, registers)) check_tile(&t, m);
          }
}

static void every_tile(void **state) {
  (void)state;
  struct vector_registers v = host_vectors();
  static struct room room;
  if (!v.fma) skip();
  for (int64_t i = 0; i < 2 * CELLS; i++) {
    set(DT_F32, room.pool[0], i, some_number());
    set(DT_F64, room.pool[1], i, some_number());
  }
  check_width(v.bytes, v.count, &room);
  if (v.bytes == 64) check_width(32, 16, &room);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_tile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

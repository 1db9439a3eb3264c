/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products in the order of ir/ops/matmul.c, bit for bit as plain loops here have it: of the interpreter, and of
 * compiled code with portable bits, for each processor that this machine can compute as; and near the sum in extended
 * precision. */
#include "tests/ops/in_order.h"
#include "tests/support/elements.h"
#include "tests/support/random.h"

#include "ir/graph/build.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct shape {
  int batch, m, n, k; /* batch 0: no such axis */
  bool ta, tb;
};

/* Around the ends of pieces, of vectors and of blocks. */
static const struct shape large[] = {
    {0, 3, 5, 511, 0, 0},    {0, 3, 5, 512, 1, 0},     {0, 17, 33, 513, 0, 1},  {0, 1, 1, 1023, 1, 1},
    {0, 2, 31, 1024, 0, 0},  {0, 29, 1, 1025, 0, 0},   {0, 5, 16, 1536, 1, 1},  {0, 1, 40, 1537, 0, 1},
    {0, 7, 3, 2048, 0, 0},   {0, 2, 2, 2049, 1, 0},    {0, 1, 17, 3583, 0, 0},  {0, 4, 9, 3584, 0, 1},
    {0, 3, 3, 4097, 1, 1},   {2, 1, 1, 5000, 0, 0},    {0, 150, 130, 20, 0, 0}, {0, 131, 200, 37, 1, 0},
    {0, 128, 129, 33, 0, 1}, {0, 300, 10, 70, 0, 0},   {0, 10, 300, 70, 1, 1},  {0, 513, 2, 3, 0, 1},
    {0, 37, 1, 600, 1, 0},   {2, 300, 1, 70, 0, 0},    {2, 300, 1, 70, 1, 1},   {0, 2, 513, 9, 0, 0},
    {0, 0, 3, 4, 0, 0},      {0, 3, 0, 4, 1, 0},       {0, 3, 4, 0, 0, 1},      {0, 3, 4, 0, 1, 1},
    {0, 0, 0, 0, 0, 0},      {0, 0, 5, 600, 1, 1},     {3, 20, 33, 40, 0, 0},   {5, 4, 1, 17, 1, 0},
    {7, 15, 15, 16, 0, 1},   {4, 6, 64, 8, 1, 1},      {3, 2, 2, 700, 0, 1},    {0, 16, 16, 16, 0, 0},
    {0, 32, 32, 32, 1, 0},   {0, 64, 256, 64, 0, 0},   {0, 40, 130, 600, 0, 0}, {0, 33, 140, 1100, 0, 1},
    {0, 1, 400, 600, 0, 0},  {0, 2, 391, 77, 0, 0},    {0, 2, 390, 40, 1, 1},   {3, 1, 97, 3, 1, 0},
    {0, 32, 150, 300, 0, 1}, {0, 16, 200, 2600, 0, 1}, {2, 30, 530, 100, 1, 1}, {0, 300, 70, 600, 0, 0},
    {0, 40, 300, 1100, 1, 0}};
enum { NLARGE = sizeof large / sizeof *large, NRANDOM = 220, NSHAPES = NLARGE + NRANDOM };

static struct shape shape_at(int i) {
  struct rng r = {1000 + (uint64_t)i};
  struct shape s = {0};
  if (i < NLARGE) return large[i];
  s.m = 1 + rng_below(&r, 70), s.n = 1 + rng_below(&r, 70), s.k = 1 + rng_below(&r, 70);
  s.ta = rng_chance(&r, 50), s.tb = rng_chance(&r, 50);
  if (rng_chance(&r, 15)) s.batch = 1 + rng_below(&r, 4);
  return s;
}

static struct type operand_type(enum dtype d, int batch, int rows, int columns, bool transposed) {
  struct type t = {.dtype = (uint8_t)d};
  if (batch) t.dim[t.rank++] = batch;
  t.dim[t.rank++] = transposed ? columns : rows;
  t.dim[t.rank++] = transposed ? rows : columns;
  return t;
}

/* ---- the oracle: all products of an element are laid out, then whole pieces are joined level by level ---- */

#define DEFINE_ORACLE(name, T, FMA)                                                    \
  static T name(const T *a, const T *b, int k) {                                       \
    enum { PIECE = 512 };                                                              \
    T sums[64] = {0};                                                                  \
    int sizes[64] = {0}, count = 0;                                                    \
    if (k == 0) return 0;                                                              \
    for (int begin = 0; begin < k; begin += PIECE) {                                   \
      T sum = 0;                                                                       \
      for (int l = begin; l < k && l < begin + PIECE; l++) sum = FMA(a[l], b[l], sum); \
      sums[count] = sum, sizes[count++] = 1;                                           \
      for (; count > 1 && sizes[count - 1] == sizes[count - 2]; count--)               \
        sums[count - 2] = sums[count - 2] + sums[count - 1], sizes[count - 2] *= 2;    \
    }                                                                                  \
    for (; count > 1; count--) sums[count - 2] = sums[count - 2] + sums[count - 1];    \
    return sums[0];                                                                    \
  }
DEFINE_ORACLE(f32_element, float, fmaf)
DEFINE_ORACLE(f64_element, double, fma)

/* The product, each element from the row and the column that make it; with `near` it is near the sum in extended
 * precision, too. */
#define DEFINE_PRODUCT(name, T, element, EPSILON)                                                     \
  static void name(const struct shape *s, const void *xs, const void *ys, void *zs, bool near) {      \
    const T *x = xs, *y = ys;                                                                         \
    T *out = zs;                                                                                      \
    int batches = s->batch ? s->batch : 1;                                                            \
    T *a = malloc(((size_t)s->k + 1) * sizeof *a), *b = malloc(((size_t)s->k + 1) * sizeof *b);       \
    assert_true(a &&b);                                                                               \
    for (int e = 0; e < batches * s->m * s->n; e++) {                                                 \
      int batch = e / (s->m * s->n), i = e / s->n % s->m, j = e % s->n;                               \
      const T *l = x + batch * s->m * s->k, *r = y + batch * s->k * s->n;                             \
      long double exact = 0, size = 0;                                                                \
      for (int p = 0; p < s->k; p++) {                                                                \
        a[p] = l[s->ta ? p * s->m + i : i * s->k + p], b[p] = r[s->tb ? j * s->k + p : p * s->n + j]; \
        if (near)                                                                                     \
          exact += (long double)a[p] * (long double)b[p],                                             \
              size += fabsl((long double)a[p] * (long double)b[p]);                                   \
      }                                                                                               \
      out[e] = element(a, b, s->k);                                                                   \
      if (near)                                                                                       \
        assert_true(fabsl((long double)out[e] - exact) <=                                             \
                    EPSILON * 1.01L * (s->k < 512 ? s->k : 512 + 10) * size + 1e-40L);                \
    }                                                                                                 \
    free(a);                                                                                          \
    free(b);                                                                                          \
  }
DEFINE_PRODUCT(product_f32, float, f32_element, 0x1p-24L)
DEFINE_PRODUCT(product_f64, double, f64_element, 0x1p-53L)

/* ---- all shapes as one graph ---- */

static void in_order(void **state) {
  const struct operand_kind *kind = *state;
  struct in_order *o = in_order_create(NSHAPES);
  struct arena *a = o->arena;
  struct rng r = {77};
  for (int i = 0; i < NSHAPES; i++) {
    struct shape s = shape_at(i);
    struct type types[] = {operand_type(kind->dtype, s.batch, s.m, s.k, s.ta),
                           operand_type(kind->dtype, s.batch, s.k, s.n, s.tb)};
    struct tensor t[2];
    struct node *x[2];
    for (int k = 0; k < 2; k++) {
      t[k] = (struct tensor){types[k], arena_alloc(a, (size_t)type_bytes(&types[k]) + 1)};
      if (kind->special)
        special_fill(&r, &t[k]);
      else
        for (int64_t e = 0; e < type_count(&t[k].type); e++) tensor_set(&t[k], e, rng_uniform(&r, -1, 1));
      x[k] = in_order_operand(o, arena_printf(a, "%s%d", k ? "y" : "x", i), &t[k], kind->stored);
    }
    const char *what =
        arena_printf(a, "%d of %dx%dx%d%s%s", s.batch, s.m, s.n, s.k, s.ta ? " ta" : "", s.tb ? " tb" : "");
    struct tensor *want = in_order_result(o, build_matmul(o->g, x[0], x[1], s.ta, s.tb), what);
    (kind->dtype == DT_F32 ? product_f32 : product_f64)(&s, t[0].data, t[1].data, want->data, !kind->special);
  }
  in_order_check(o);
  in_order_destroy(o);
}

/* ---- whether the library is started ---- */

int dnnl_engine_create(void **engine, int kind, size_t index);
static int library_starts;

/* In the place of the library's, before all else that is asked of it; there is no memory. */
int dnnl_engine_create(void **engine, int kind, size_t index) {
  (void)engine, (void)kind, (void)index;
  library_starts++;
  return 1;
}

/* x by y, by the CPU, without --bits portable. */
static bool runs(const char *op, const char *x, const char *y) {
  struct arena *a = arena_create();
  struct diags d;
  struct engine e;
  diags_init(&d, a);
  const char *text = arena_printf(
      a, "graph one {\n x = input : f32[%s]\n y = input : f32[%s]\n z = %s x, y\n value z\n}\n", x, y, op);
  struct graph *g = graph_parse(a, source_make(a, "one", text, strlen(text)), &d);
  if (g) g->config.batch = 1;
  struct plan *p = g ? engine_plan(a, g, &d) : NULL;
  if (!p) fail_msg("%s", diags_text(&d, false));
  struct values inputs = values_make(a), variables = values_make(a), outputs = values_make(a);
  for (int i = 0; i < p->ninputs; i++) {
    const struct type *t = &p->inputs[i].type;
    values_put(&inputs, p->inputs[i].name, t, arena_alloc(a, (size_t)type_bytes(t)));
  }
  assert_true(engine_open(&e, "cpu", 1));
  bool good = engine_run(&e, p, &inputs, &variables, &outputs, 1, &d);
  engine_close(&e);
  arena_destroy(a);
  return good;
}

static void starts_no_library(void **state) {
  (void)state;
  if (!can_be("haswell")) skip();
  unsetenv("DGC_CPU");
  assert_true(runs("matmul", "128,64", "64,32"));
  assert_true(runs("matmul", "1,40", "40,10"));
  assert_true(runs("matmul", "300,300", "300,300"));
  assert_int_equal(library_starts, 0);
  /* It would be seen: convolutions start it, where there is one that they are left to. */
  bool good = runs("conv", "2,9,9,16", "3,3,16,16");
  assert_true(good == (library_starts == 0));
  if (good) print_message("SKIP: nothing is left to a library\n");
}

int main(void) {
  struct CMUnitTest tests[OPERAND_KINDS + 1] = {cmocka_unit_test(starts_no_library)};
  for (int i = 0; i < OPERAND_KINDS; i++)
    tests[i + 1] = (struct CMUnitTest){
        .name = operand_kinds[i].name, .test_func = in_order, .initial_state = &operand_kinds[i]};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that round to a narrow type, and the cast to it and back, to the bit: every value of the type, and between
 * each and the next the bits that decide, against a reference that compares distances; their gradient, which goes
 * straight through; and who makes use of a product's promise of bfloat16 values. By each backend of the CPU, or on the
 * simulated GPU that is named. */
#include "base/bits.h"
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/support/bound.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *gpu; /* "gpu:0", or NULL */
static bool simulated;

struct narrow {
  enum dtype dtype;
  enum op_id op;
  int fraction, bias; /* bits behind the point; what the exponent's bits are more than the exponent */
};
static const struct narrow narrow_types[] = {{DT_BF16, OP_round_bf16, 7, 127},
                                             {DT_F16, OP_round_f16, 10, 15}};
enum { NARROW_TYPES = sizeof narrow_types / sizeof *narrow_types };

static uint32_t infinite(const struct narrow *t) { return 0x7fff & ~((1u << t->fraction) - 1); }

/* The number whose size has these bits; of infinity, the one that would be behind the largest. */
static double value_at(const struct narrow *t, uint32_t bits) {
  int exponent = (int)(bits >> t->fraction), part = (int)(bits & ((1u << t->fraction) - 1));
  return exponent ? ldexp((1 << t->fraction) + part, exponent - t->bias - t->fraction)
                  : ldexp(part, 1 - t->bias - t->fraction);
}

/* The bits of a number of the type, by search; else those behind infinity. */
static uint32_t bits_at(const struct narrow *t, double value) {
  uint32_t low = 0, high = infinite(t) + 1;
  while (high - low > 1) {
    uint32_t middle = (low + high) / 2;
    if (value_at(t, middle) <= value)
      low = middle;
    else
      high = middle;
  }
  return value_at(t, low) == value ? low : infinite(t) + 1;
}

/* No number of the type is nearer, and of two equally near it is the even one. What is behind the middle of the largest
 * and the next is infinite. Distances of neighbours are exact in f64. NaN: any NaN of the type. A number that is
 * subnormal in bfloat16: zero. */
static bool is_nearest(const struct narrow *t, uint32_t x, uint32_t y) {
  if (isnan(f32_of_bits(x))) return isnan(f32_of_bits(y)) && (y & ((1u << (23 - t->fraction)) - 1)) == 0;
  if ((x ^ y) >> 31) return false;
  if (t->dtype == DT_BF16 && (x & 0x7f800000) == 0) return (y & 0x7fffffff) == 0;
  if (isinf(f32_of_bits(x))) return y == x;
  bool is_infinite = isinf(f32_of_bits(y));
  uint32_t at = is_infinite ? infinite(t) : bits_at(t, fabs((double)f32_of_bits(y)));
  if (at > infinite(t) || (at == infinite(t)) != is_infinite) return false;
  double size = fabs((double)f32_of_bits(x)), off = fabs(size - value_at(t, at));
  for (int k = -1; k <= 1; k += 2) {
    if ((at == 0 && k < 0) || (at == infinite(t) && k > 0)) continue;
    double other = fabs(size - value_at(t, at + (uint32_t)k));
    if (other < off || (other == off && (at & 1))) return false;
  }
  return true;
}

/* Of either sign: all numbers of the type, behind each what lies around the middle of it and the next, and something at
 * random; what is beyond the largest; NaNs, also those whose bits are all cut off. */
static float *patterns(struct arena *a, const struct narrow *t, int64_t *count) {
  enum { BETWEEN = 7, BEYOND = 100000 };
  float *x = arena_new_array(a, 2 * (0x8000 * BETWEEN + BEYOND), float);
  struct rng r = {16};
  int64_t n = 0;
  for (uint32_t at = 0; at < infinite(t); at++) {
    double value = value_at(t, at), next = value_at(t, at + 1);
    uint32_t low = f32_bits((float)value), middle = f32_bits((float)((value + next) / 2));
    uint32_t high = f32_bits((float)next);
    uint32_t between[BETWEEN] = {low,
                                 low + 1,
                                 middle - 1,
                                 middle,
                                 middle + 1,
                                 high - 1,
                                 low + (uint32_t)rng_below(&r, (int64_t)(high - low))};
    for (int i = 0; i < BETWEEN; i++) x[n++] = f32_of_bits(between[i]);
  }
  uint32_t behind = f32_bits((float)value_at(t, infinite(t)));
  for (int i = 0; i < BEYOND; i++) {
    uint32_t bits = i % 2 ? 0x7f800000 + (uint32_t)rng_below(&r, 0x800000)
                          : behind + (uint32_t)rng_below(&r, (int64_t)(0x7f800001 - behind));
    x[n++] = f32_of_bits(bits);
  }
  x[n++] = f32_of_bits(0x7f800001);
  for (int64_t i = n; i > 0; i--) x[n] = f32_of_bits(f32_bits(x[i - 1]) | 0x80000000), n++;
  *count = n;
  return x;
}

static void check(const struct narrow *t, const float *x, const float *y, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!is_nearest(t, f32_bits(x[i]), f32_bits(y[i])))
      fail_msg("%s of %08x is not %08x", op_table[t->op]->name, f32_bits(x[i]), f32_bits(y[i]));
}

/* The outputs y and z are the same to the bit: as evaluated here, and by each engine. */
static const struct tensor *check_engines(struct arena *a, struct graph *g, const struct values *inputs,
                                          struct tensor *values, struct diags *d) {
  struct values variables = values_make(a);
  assert_true(graph_eval(a, g, inputs, &variables, values));
  const struct tensor *y = output_value(g, values, "y");
  size_t bytes = (size_t)type_bytes(&y->type);
  assert_memory_equal(output_value(g, values, "z")->data, y->data, bytes);
  struct plan *p = engine_plan(a, g, d);
  if (!p) fail_msg("%s", diags_text(d, false));
  for (int e = 0; e < nengines; e++) {
    struct values outputs = values_make(a);
    if (!engine_run(&engines[e], p, inputs, &variables, &outputs, 1, d)) fail_msg("%s", diags_text(d, false));
    assert_memory_equal(values_get(&outputs, "y")->data, y->data, bytes);
    assert_memory_equal(values_get(&outputs, "z")->data, y->data, bytes);
  }
  return y;
}

static void check_type(const struct narrow *narrow) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_create(a, "bits", &d);
  int64_t count;
  const float *x = patterns(a, narrow, &count);
  struct type t = {.dtype = DT_F32, .rank = 1, .dim = {count}};
  g->config.batch = 1;
  if (gpu) target_parse(a, gpu, &g->config.target, &d, LOC_NONE);
  struct node *x_node = build_input(g, "x", &t);
  graph_add_output(g, OUTPUT_VALUE, "y", build1(g, narrow->op, x_node), 0);
  graph_add_output(g, OUTPUT_VALUE, "z", build_cast(g, build_cast(g, x_node, narrow->dtype), DT_F32), 0);
  struct values inputs = values_make(a);
  values_put(&inputs, "x", &t, x);
  struct tensor *values = arena_new_array(a, g->count, struct tensor);
  check(narrow, x, check_engines(a, g, &inputs, values, &d)->data, count);
  arena_destroy(a);
}

static void bits(void **state) {
  (void)state;
  for (int i = 0; i < NARROW_TYPES; i++) check_type(&narrow_types[i]);
}

/* Rows of f32 added to a table in 16 bits are those that are added to its f32, rounded once: numbers that repeat, that
 * name no row, and rows longer than a block of the kernel's; of the interpreter and of CPUs in pieces. */
static void check_rows(const struct narrow *narrow, int64_t width) {
  enum { ROWS = 40, COUNT = 75 };
  struct arena *a = arena_create();
  struct diags d;
  struct rng r = {21};
  diags_init(&d, a);
  struct graph *g = graph_create(a, "rows", &d);
  struct type table = type_make(DT_F32, 2, (int64_t[]){ROWS, width});
  struct type index = type_make(DT_I32, 1, (int64_t[]){COUNT});
  struct type values = type_make(DT_F32, 2, (int64_t[]){COUNT, width});
  float *t = arena_new_array(a, (size_t)(ROWS * width), float);
  float *v = arena_new_array(a, (size_t)(COUNT * width), float);
  int32_t *at = arena_new_array(a, COUNT, int32_t);
  for (int64_t i = 0; i < ROWS * width; i++) t[i] = (float)ldexp((double)rng_below(&r, 4096) - 2048, -9);
  for (int64_t i = 0; i < COUNT * width; i++) v[i] = (float)ldexp((double)rng_below(&r, 4096) - 2048, -19);
  for (int i = 0; i < COUNT; i++) at[i] = (int32_t)rng_below(&r, ROWS / 2) * 2 - 2;
  g->config.batch = 1;
  struct node *x = build1(g, narrow->op, build_input(g, "t", &table));
  struct node *i = build_input(g, "i", &index), *rows = build_input(g, "v", &values);
  struct node *wide = build3(g, OP_scatter_add, x, i, rows);
  struct node *small = build3(g, OP_scatter_add, build_cast(g, x, narrow->dtype), i, rows);
  graph_add_output(g, OUTPUT_VALUE, "y", build1(g, narrow->op, wide), 0);
  graph_add_output(g, OUTPUT_VALUE, "z", build_cast(g, small, DT_F32), 0);
  struct values inputs = values_make(a);
  values_put(&inputs, "t", &table, t);
  values_put(&inputs, "i", &index, at);
  values_put(&inputs, "v", &values, v);
  struct tensor *all = arena_new_array(a, g->count, struct tensor);
  const struct tensor *y = check_engines(a, g, &inputs, all, &d);
  assert_memory_not_equal(y->data, all[x->id].data, (size_t)type_bytes(&table));
  arena_destroy(a);
}

static void rows(void **state) {
  static const int64_t widths[] = {1, 64, 600};
  (void)state;
  for (int i = 0; i < NARROW_TYPES; i++)
    for (int k = 0; k < 3; k++) check_rows(&narrow_types[i], widths[k]);
}

/* What a test of steps cannot ask for: the gradient is what comes from above, at ties and between. */
static void check_gradient(const struct narrow *narrow) {
  static const float x[4] = {1, 1.00390625f, 1e-40f, 3.3e38f}, w[4] = {1, 1.00390625f, -3, 1e-30f};
  struct arena *a = arena_create();
  const char *text =
      arena_printf(a,
                   "graph straight {\n x = input : f32[4]\n w = input : f32[4]\n r = %s x\n"
                   " t = mul r, w\n loss = reduce_sum t {axes=[0]}\n g = gradient loss, x\n value g\n}\n",
                   op_table[narrow->op]->name);
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_parse(a, source_make(a, "straight", text, strlen(text)), &d);
  if (g) g = pipeline_run(a, g, "grad", NULL, &(struct pipeline_options){.verify_each = true}, &d);
  if (!g) fail_msg("%s", diags_text(&d, false));
  struct values inputs = values_make(a);
  struct type t = {.dtype = DT_F32, .rank = 1, .dim = {4}};
  values_put(&inputs, "x", &t, x);
  values_put(&inputs, "w", &t, w);
  struct tensor *values = arena_new_array(a, g->count, struct tensor);
  assert_true(graph_eval(a, g, &inputs, &inputs, values));
  assert_memory_equal(output_value(g, values, "g")->data, w, sizeof w);
  arena_destroy(a);
}

static void gradient(void **state) {
  (void)state;
  for (int i = 0; i < NARROW_TYPES; i++) check_gradient(&narrow_types[i]);
}

/* A promise that is not kept shows who relies on it, for these products alone: all do, GPUs with and without TF32,
 * which is allowed and not asked for: a simulated one takes it, and cuBLAS may. */
static void promise(void **state) {
  (void)state;
  static const float x = 1 + 0x1p-7f + 0x1p-9f + 0x1p-12f, y = 1, tf32 = 1 + 0x1p-7f + 0x1p-9f,
                     bf16 = 1 + 0x1p-7f;
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_create(a, "promise", &d);
  struct type t = {.dtype = DT_F32, .rank = 2, .dim = {1, 1}};
  g->config.batch = 1;
  if (gpu) target_parse(a, gpu, &g->config.target, &d, LOC_NONE);
  struct node *l = build_input(g, "x", &t), *r = build_input(g, "y", &t);
  graph_add_output(g, OUTPUT_VALUE, "plain", build_matmul(g, l, r, false, false), 0);
  graph_add_output(g, OUTPUT_VALUE, "bf16", build_matmul_in(g, l, r, false, false, "bf16"), 0);
  struct values inputs = values_make(a), variables = values_make(a);
  values_put(&inputs, "x", &t, &x);
  values_put(&inputs, "y", &t, &y);
  struct plan *p = engine_plan(a, g, &d);
  if (!p) fail_msg("%s", diags_text(&d, false));
  for (int e = 0; e < nengines; e++)
    for (int fast = 0; fast < 2; fast++) {
      struct values outputs = values_make(a);
      engines_allow_tf32(engines[e].engines, fast);
      if (!engine_run(&engines[e], p, &inputs, &variables, &outputs, 1, &d))
        fail_msg("%s", diags_text(&d, false));
      const float *plain = values_get(&outputs, "plain")->data, *half = values_get(&outputs, "bf16")->data;
      bool rounded = gpu && fast && *plain == tf32;
      assert_true(simulated && fast ? rounded : rounded || *plain == x);
      assert_true(*half == bf16);
    }
  arena_destroy(a);
}

static void on_gpu(void **state) {
  if (!gpus_found(&simulated)) skip();
  assert_true(engine_open_on(&engines[nengines], "cuda", gpu, 1));
  nengines++;
  bits(state);
  promise(state);
  close_engines(state);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bits), cmocka_unit_test(rows),
                                     cmocka_unit_test(gradient), cmocka_unit_test(promise)};
  const struct CMUnitTest one[] = {cmocka_unit_test(on_gpu)};
  if (argc > 1) gpu = argv[1];
  return gpu ? gpu_status(cmocka_run_group_tests(one, NULL, NULL))
             : cmocka_run_group_tests(tests, open_engines, close_engines);
}

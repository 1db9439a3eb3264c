/* SPDX-License-Identifier: Apache-2.0 */
/* round_bf16, and the cast to bf16 and back, to the bit: every bfloat16, and between each and the next the bits that
 * decide, against a reference that compares distances; its gradient, which goes straight through; and who makes use of
 * a product's promise. By each backend of the CPU, or on the simulated GPU that is named. */
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

static uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* The nearer of the bfloat16 towards zero and the one away from it, which behind the largest is 2^128. Differences
 * of two neighbours are exact in f64. NaN: any NaN that is a bfloat16. A subnormal number: zero. */
static bool is_nearest(uint32_t x, uint32_t y) {
  if (y & 0xffff) return false;
  if (isnan(float_of(x))) return isnan(float_of(y));
  uint32_t sign = x & 0x80000000, near = x & 0x7fff0000, far = near + 0x10000;
  if ((x & 0x7f800000) == 0) return y == sign;
  if (isinf(float_of(x)) || near == (x & 0x7fffffff)) return y == x;
  double value = (double)float_of(x & 0x7fffffff), low = (double)float_of(near);
  double high = far == 0x7f800000 ? 0x1p128 : (double)float_of(far);
  double down = value - low, up = high - value;
  bool away = up < down || (up == down && (near >> 16 & 1));
  return y == (sign | (away ? far : near));
}

/* All upper halves, under each what lies around a tie and something at random. */
static float *patterns(struct arena *a, int64_t *count) {
  static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  enum { LOW = sizeof low / sizeof *low };
  float *x = arena_new_array(a, 65536 * (LOW + 1), float);
  struct rng r = {16};
  int64_t n = 0;
  for (uint32_t high = 0; high < 65536; high++) {
    for (int i = 0; i < LOW; i++) x[n++] = float_of(high << 16 | low[i]);
    x[n++] = float_of(high << 16 | (uint32_t)rng_below(&r, 65536));
  }
  *count = n;
  return x;
}

static void check(const char *who, const float *x, const float *y, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!is_nearest(bits_of(x[i]), bits_of(y[i])))
      fail_msg("%s: round_bf16 of %08x is not %08x", who, bits_of(x[i]), bits_of(y[i]));
}

static void bits(void **state) {
  (void)state;
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_create(a, "bits", &d);
  int64_t count;
  const float *x = patterns(a, &count);
  struct type t = {.dtype = DT_F32, .rank = 1, .dim = {count}};
  g->config.batch = 1;
  if (gpu) target_parse(a, gpu, &g->config.target, &d, LOC_NONE);
  struct node *x_node = build_input(g, "x", &t);
  graph_add_output(g, OUTPUT_VALUE, "y", build1(g, OP_round_bf16, x_node), 0);
  graph_add_output(g, OUTPUT_VALUE, "z", build_cast(g, build_cast(g, x_node, DT_BF16), DT_F32), 0);
  struct values inputs = values_make(a), variables = values_make(a), outputs;
  values_put(&inputs, "x", &t, x);
  struct tensor *values = arena_new_array(a, g->count, struct tensor);
  assert_true(graph_eval(a, g, &inputs, &variables, values));
  check("node_eval", x, output_value(g, values, "y")->data, count);
  check("node_eval, cast", x, output_value(g, values, "z")->data, count);
  struct plan *p = engine_plan(a, g, &d);
  if (!p) fail_msg("%s", diags_text(&d, false));
  for (int e = 0; e < nengines; e++) {
    outputs = values_make(a);
    if (!engine_run(&engines[e], p, &inputs, &variables, &outputs, 1, &d))
      fail_msg("%s", diags_text(&d, false));
    check(engines[e].backend->name, x, values_get(&outputs, "y")->data, count);
    check(engines[e].backend->name, x, values_get(&outputs, "z")->data, count);
  }
  arena_destroy(a);
}

/* What a test of steps cannot ask for: the gradient is what comes from above, at ties and between. */
static void gradient(void **state) {
  (void)state;
  static const char text[] =
      "graph straight {\n x = input : f32[4]\n w = input : f32[4]\n r = round_bf16 x\n"
      " t = mul r, w\n loss = reduce_sum t {axes=[0]}\n g = gradient loss, x\n value g\n}\n";
  static const float x[4] = {1, 1.00390625f, 1e-40f, 3.3e38f}, w[4] = {1, 1.00390625f, -3, 1e-30f};
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_parse(a, source_make(a, "straight", text, sizeof text - 1), &d);
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

/* A promise that is not kept shows who relies on it, for these products alone: all do, GPUs with and without TF32. */
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
      assert_true(*plain == (gpu && fast ? tf32 : x));
      assert_true(*half == bf16);
    }
  arena_destroy(a);
}

/* In one test, which opens the device: a simulated one sees to faults of memory itself, and each test of the
 * framework begins with seeing to them instead. */
static void on_gpu(void **state) {
  assert_true(engine_open_on(&engines[nengines], "cuda", gpu, 1));
  nengines++;
  bits(state);
  promise(state);
  close_engines(state);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bits), cmocka_unit_test(gradient),
                                     cmocka_unit_test(promise)};
  const struct CMUnitTest one[] = {cmocka_unit_test(on_gpu)};
  if (argc > 1) gpu = argv[1];
  return gpu ? cmocka_run_group_tests(one, NULL, NULL)
             : cmocka_run_group_tests(tests, open_engines, close_engines);
}

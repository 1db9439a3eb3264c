/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and both gradients against JAX's: conv.def, small integers, whose sums are exact in any order: as
 * evaluated here, by the CPU's backend, and on the GPU that is named. The CPU's units for bf16 are given windows over
 * padding of all kinds, too, and the GPU drawn sizes, few channels above all. */
#include "base/str.h"
#include "ir/ops/op.h"
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/ops/check.h"
#include "tests/support/cases.h"
#include "tests/support/elements.h"
#include "tests/support/eval.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct row {
  const char *input, *kernel, *strides, *low, *high, *input_dilation, *kernel_dilation;
  int groups;
  const char *output;
  int64_t sums[2][3]; /* of output, gradient by the input, gradient by the kernel; without and with NaN */
  bool nan_kernel;    /* whether the kernel has one, too */
};

static const struct row rows[] = {
#define CONV(x, w, strides, low, high, xd, wd, groups, y, a, b, c, d, e, f) \
  {x, w, strides, low, high, xd, wd, groups, y, {{a, b, c}, {d, e, f}}, false},
#include "tests/ops/conv.def"
#undef CONV
};

/* numbers() and check() of conv.py. */
static void fill(struct tensor *t, int seed, bool nan) {
  int64_t count = type_count(&t->type);
  for (int64_t i = 0; i < count; i++)
    tensor_set(t, i, (double)((i * 37 + i * i % 13 * 5 + seed * 53 + 11) % 17 - 8));
  if (nan && count) tensor_set(t, count / 2, NAN);
}

static int window(struct arena *a, const struct row *r, struct attr *out) {
  const struct {
    enum attr_key key;
    const char *text;
  } given[] = {{ATTR_strides, r->strides},
               {ATTR_padding_low, r->low},
               {ATTR_padding_high, r->high},
               {ATTR_input_dilation, r->input_dilation},
               {ATTR_kernel_dilation, r->kernel_dilation}};
  int count = 0;
  for (int i = 0; i < CASE_COUNT(given); i++) {
    int64_t *ints = arena_new_array(a, 3, int64_t);
    int n = 0;
    for (const char *p = given[i].text; *p; p += *p == ',') ints[n++] = strtoll(p, (char **)&p, 10);
    if (n) out[count++] = attr_ints(given[i].key, n, ints);
  }
  if (r->groups != 1) out[count++] = attr_int(ATTR_groups, r->groups);
  return count;
}

/* sum(conv(x, w) * up) and its gradients, made by the compiler's own rule: y, dx, dw. */
static struct graph *row_graph(struct arena *a, const struct row *r, bool nan, enum dtype d, bool bf16,
                               struct values *variables, struct diags *diags) {
  struct graph *g = graph_create(a, "conv", diags);
  struct type tx = case_shape(d, r->input), tw = case_shape(d, r->kernel), ty = case_shape(d, r->output);
  struct attr attrs[8];
  struct node *x = check_leaf(g, fill, "x", &tx, 1, nan, variables),
              *w = check_leaf(g, fill, "w", &tw, 2, r->nan_kernel, variables);
  struct node *up = check_leaf(g, fill, "up", &ty, 3, nan, variables);
  int count = window(a, r, attrs);
  if (bf16) attrs[count++] = attr_string(ATTR_precision, "bf16");
  struct node *y = build(g, OP_conv, 2, (struct node *[]){x, w}, count, attrs, NULL);
  if (!y || !type_equal(&y->type, &ty))
    fail_msg("%s by %s: %s", r->input, r->kernel, diags_text(diags, false));
  struct node *loss = build_reduce(g, OP_reduce_sum, build2(g, OP_mul, y, up), (1u << ty.rank) - 1);
  graph_add_output(g, OUTPUT_VALUE, "y", y, 0);
  graph_add_output(g, OUTPUT_VALUE, "dx", build_gradient(g, loss, x), 0);
  graph_add_output(g, OUTPUT_VALUE, "dw", build_gradient(g, loss, w), 0);
  struct graph *e = pipeline_run(a, g, "grad", NULL, &(struct pipeline_options){.verify_each = true}, diags);
  if (!e) fail_msg("%s", diags_text(diags, false));
  return e;
}

static void compare(const struct row *r, bool nan, int i, const struct tensor *value, const char *how) {
  static const char *const names[] = {"output", "gradient by the input", "gradient by the kernel"};
  int64_t got = check_sum(value);
  if (got != r->sums[nan][i])
    fail_msg("%s by %s%s%s: the %s has the check sum %lld, JAX's has %lld", r->input, r->kernel,
             nan ? " with NaN" : "", how, names[i], (long long)got, (long long)r->sums[nan][i]);
}

static void check_row(const struct row *r, bool nan, enum dtype d) {
  struct arena *a = arena_create();
  struct diags diags;
  diags_init(&diags, a);
  struct values none = values_make(a), variables = values_make(a);
  struct graph *e = row_graph(a, r, nan, d, false, &variables, &diags);
  struct tensor *values = arena_new_array(a, e->count, struct tensor);
  assert_true(graph_eval(a, e, &none, &variables, values));
  for (int i = 0; i < 3; i++) compare(r, nan, i, &values[e->outputs[i].node->id], "");
  arena_destroy(a);
}

static void as_jax(void **state) {
  (void)state;
  for (int i = 0; i < CASE_COUNT(rows); i++)
    for (int nan = 0; nan < 2; nan++) {
      const struct row *r = &rows[i];
      if (!nan || (!*r->strides && !*r->input_dilation && !*r->kernel_dilation)) check_row(r, nan, DT_F64);
    }
}

/* Small sums are exact there, too. */
static void in_single(void **state) {
  (void)state;
  for (int i = 0; i < CASE_COUNT(rows); i++) check_row(&rows[i], false, DT_F32);
}

/* Sizes and work of what nobody can run: numbers stay numbers. */
static void sizes_have_ends(void **state) {
  (void)state;
  enum { FAR = 1 << 30, REFUSED = -1 };
  static const struct {
    int64_t input, kernel, padding, kernel_dilation, input_dilation, output, flops;
  } cases[] = {
      {4, 3, MAX_ELEMENTS, MAX_ELEMENTS, 1, 4, 24},
      {4, 4, MAX_ELEMENTS, MAX_ELEMENTS, 1, 0, 0},
      {4, MAX_ELEMENTS, MAX_ELEMENTS, MAX_ELEMENTS, 1, REFUSED, 0},
      {MAX_ELEMENTS / 2, 3, 0, 1, MAX_ELEMENTS, REFUSED, 0},
      {2, 2, 0, MAX_ELEMENTS - 2, MAX_ELEMENTS - 1, 2, 8},
      {1, FAR, FAR, 1, 1, FAR + 2, 2 * (INT64_C(1) << 60)},
      {1, MAX_ELEMENTS / 4, MAX_ELEMENTS / 4, 1, 1, MAX_ELEMENTS / 4 + 2, INT64_C(1) << 60},
  };
  for (int i = 0; i < CASE_COUNT(cases); i++) {
    struct arena *a = arena_create();
    struct diags diags;
    diags_init(&diags, a);
    struct graph *g = graph_create(a, "conv", &diags);
    struct type tx = type_make(DT_F32, 3, (int64_t[]){1, cases[i].input, 1});
    struct type tw = type_make(DT_F32, 3, (int64_t[]){cases[i].kernel, 1, 1});
    struct node *in[2] = {build_variable(g, "x", &tx, true, NULL), build_variable(g, "w", &tw, true, NULL)};
    struct attr attrs[4] = {attr_ints(ATTR_padding_low, 1, &cases[i].padding),
                            attr_ints(ATTR_padding_high, 1, &cases[i].padding),
                            attr_ints(ATTR_input_dilation, 1, &cases[i].input_dilation),
                            attr_ints(ATTR_kernel_dilation, 1, &cases[i].kernel_dilation)};
    struct node *y = build(g, OP_conv, 2, in, 4, attrs, NULL);
    if (!y != (cases[i].output == REFUSED)) fail_msg("case %d: %s", i, diags_text(&diags, false));
    if (!y) {
      assert_non_null(strstr(diags_text(&diags, false), "gaps so wide"));
      arena_destroy(a);
      continue;
    }
    int64_t flops = op_of(y)->flops(y), most = INT64_C(1) << 60;
    if (y->type.dim[1] != cases[i].output || flops != (cases[i].flops > most ? most : cases[i].flops))
      fail_msg("case %d: %lld places, %lld operations", i, (long long)y->type.dim[1], (long long)flops);
    arena_destroy(a);
  }
}

static const char *gpu; /* "gpu:0", or NULL */

/* Small integers are as exact as bfloat16 and as TF32. */
static void check_on(struct engine *engine, const char *target, const struct row *r, bool nan, bool bf16) {
  static const char *const outputs[] = {"y", "dx", "dw"};
  struct arena *a = arena_create();
  struct diags diags;
  diags_init(&diags, a);
  struct values none = values_make(a), variables = values_make(a), found = values_make(a);
  struct graph *g = row_graph(a, r, nan, DT_F32, bf16, &variables, &diags);
  g->config.batch = 1;
  target_parse(a, target, &g->config.target, &diags, LOC_NONE);
  engines_allow_tf32(engine->engines, !bf16);
  struct plan *p = engine_plan(a, g, &diags);
  if (!p || !engine_run(engine, p, &none, &variables, &found, 1, &diags))
    fail_msg("%s by %s: %s", r->input, r->kernel, diags_text(&diags, false));
  for (int i = 0; i < 3; i++)
    compare(r, nan, i, values_get(&found, outputs[i]), bf16 ? " in bf16" : " in f32 or TF32");
  arena_destroy(a);
}

/* Each by the way that its shape has, oneDNN's or one of our own; units give more NaN (docs/language.md). */
static void on_cpu(void **state) {
  assert_true(engine_open_on(&engines[nengines], "cpu", "cpu:0", 1));
  for (int i = 0; i < CASE_COUNT(rows); i++)
    for (int how = 0; how < 3; how++) {
      const struct row *r = &rows[i];
      if (how < 2 || (!*r->strides && !*r->input_dilation && !*r->kernel_dilation))
        check_on(&engines[nengines], "cpu:0", r, how > 1, how == 1);
    }
  nengines++;
  close_engines(state);
}

/* A row of two or three axes, whose windows may lie over padding, in part or wholly, in front or behind; false if it
 * has none. */
static bool draw_row(struct arena *a, struct rng *rng, struct row *r) {
  static const int widths[] = {16, 32, 16, 48, 5};
  struct str x, w, y, strides, low, high, dilation;
  struct str *const all[] = {&x, &w, &y, &strides, &low, &high, &dilation};
  int axes = rng_below(rng, 4) ? 2 : 3, batch = 1 + rng_below(rng, 3), groups = rng_below(rng, 8) ? 1 : 2;
  int channels = widths[rng_below(rng, 5)], filters = widths[rng_below(rng, 5)],
      spread = rng_below(rng, 5) ? 1 : 2;
  bool some = true;
  for (int i = 0; i < CASE_COUNT(all); i++) *all[i] = str_make(a);
  str_printf(&x, "%d,", batch), str_printf(&y, "%d,", batch);
  for (int i = 0; i < axes; i++) {
    int size = 1 + rng_below(rng, 7), kernel = 1 + rng_below(rng, 4), stride = 1 + rng_below(rng, 3);
    int before = rng_chance(rng, 50) ? rng_below(rng, 7) : 0, behind = rng_below(rng, 7);
    int room = size + before + behind - (kernel - 1) * spread - 1;
    const char *comma = i < axes - 1 ? "," : "";
    some = some && room >= 0;
    str_printf(&x, "%d,", size), str_printf(&w, "%d,", kernel), str_printf(&y, "%d,", room / stride + 1);
    str_printf(&strides, "%d%s", stride, comma), str_printf(&dilation, "%d%s", spread, comma);
    str_printf(&low, "%d%s", before, comma), str_printf(&high, "%d%s", behind, comma);
  }
  str_printf(&x, "%d", groups * channels), str_printf(&y, "%d", groups * filters);
  str_printf(&w, "%d,%d", channels, groups * filters);
  *r = (struct row){x.data,        w.data, strides.data, low.data, high.data, "",
                    dilation.data, groups, y.data,       {{0}},    false};
  return some;
}

/* By the CPU's units for bf16, where it has them, as evaluated here. */
static void over_padding(void **state) {
  enum { ROWS = 250 };
  struct rng rng = {1};
  assert_true(engine_open_on(&engines[nengines], "cpu", "cpu:0", 1));
  for (int i = 0; i < ROWS; i++) {
    struct arena *a = arena_create();
    struct diags diags;
    diags_init(&diags, a);
    struct values none = values_make(a), variables = values_make(a);
    struct row r;
    if (draw_row(a, &rng, &r)) {
      struct graph *e = row_graph(a, &r, false, DT_F32, false, &variables, &diags);
      struct tensor *values = arena_new_array(a, e->count, struct tensor);
      assert_true(graph_eval(a, e, &none, &variables, values));
      for (int k = 0; k < 3; k++) r.sums[0][k] = check_sum(&values[e->outputs[k].node->id]);
      check_on(&engines[nengines], "cpu:0", &r, false, true);
    }
    arena_destroy(a);
  }
  nengines++;
  close_engines(state);
}

/* A row of one or two axes. `few`: of channels and filters that a GPU has a kernel for; else of a few more. */
static bool draw_sizes(struct arena *a, struct rng *rng, bool few, struct row *r) {
  static const int widths[2][8] = {{17, 20, 33, 24, 18, 40, 3, 16}, {1, 2, 3, 4, 6, 9, 16, 12}};
  struct str x, w, y, strides, low, high, gaps, dilation;
  struct str *const all[] = {&x, &w, &y, &strides, &low, &high, &gaps, &dilation};
  int axes = rng_below(rng, 4) ? 2 : 1, batch = 1 + rng_below(rng, 5), groups = rng_below(rng, 3) ? 1 : 3;
  int channels = widths[few][rng_below(rng, 8)], filters = widths[few][rng_below(rng, 8)];
  bool some = true, plain = rng_chance(rng, 50);
  for (int i = 0; i < CASE_COUNT(all); i++) *all[i] = str_make(a);
  str_printf(&x, "%d,", batch), str_printf(&y, "%d,", batch);
  for (int i = 0; i < axes; i++) {
    int size = 1 + rng_below(rng, axes == 1 ? 60 : few ? 20 : 9), kernel = 1 + rng_below(rng, 5);
    int stride = plain ? 1 : 1 + rng_below(rng, 3), gap = plain ? 1 : 1 + rng_below(rng, 2);
    int spread = plain ? 1 : 1 + rng_below(rng, 2), before = rng_below(rng, 6) - 1,
        behind = rng_below(rng, 6) - 1;
    int room = (size - 1) * gap + 1 + before + behind - (kernel - 1) * spread - 1;
    const char *comma = i < axes - 1 ? "," : "";
    some = some && room >= 0;
    str_printf(&x, "%d,", size), str_printf(&w, "%d,", kernel), str_printf(&y, "%d,", room / stride + 1);
    str_printf(&strides, "%d%s", stride, comma), str_printf(&dilation, "%d%s", spread, comma);
    str_printf(&low, "%d%s", before, comma), str_printf(&high, "%d%s", behind, comma);
    str_printf(&gaps, "%d%s", gap, comma);
  }
  str_printf(&x, "%d", groups * channels), str_printf(&y, "%d", groups * filters);
  str_printf(&w, "%d,%d", channels, groups * filters);
  *r = (struct row){x.data,        w.data, strides.data, low.data, high.data, gaps.data,
                    dilation.data, groups, y.data,       {{0}},    false};
  return some;
}

/* As evaluated here: of numbers, with a NaN in input and upstream gradient, and with one in the kernel. */
static void check_drawn(struct engine *engine) {
  enum { ROWS = 60 };
  struct rng rng = {1};
  for (int i = 0; i < ROWS; i++) {
    struct arena *a = arena_create();
    struct diags diags;
    diags_init(&diags, a);
    struct values none = values_make(a);
    struct row r;
    for (int how = draw_sizes(a, &rng, i % 4 != 0, &r) ? 0 : 3; how < 3; how++) {
      struct values variables = values_make(a);
      bool nan = how == 1;
      r.nan_kernel = how == 2;
      struct graph *e = row_graph(a, &r, nan, DT_F32, false, &variables, &diags);
      struct tensor *values = arena_new_array(a, e->count, struct tensor);
      assert_true(graph_eval(a, e, &none, &variables, values));
      for (int k = 0; k < 3; k++) r.sums[nan][k] = check_sum(&values[e->outputs[k].node->id]);
      check_on(engine, gpu, &r, nan, i % 2);
    }
    arena_destroy(a);
  }
}

static void on_gpu(void **state) {
  bool simulated;
  if (!gpus_found(&simulated)) skip();
  assert_true(engine_open_on(&engines[nengines], "cuda", gpu, 1));
  for (int i = 0; i < CASE_COUNT(rows); i++)
    for (int how = 0; how < 4; how++) {
      const struct row *r = &rows[i];
      if (how < 2 || (!*r->strides && !*r->input_dilation && !*r->kernel_dilation))
        check_on(&engines[nengines], gpu, r, how > 1, how % 2);
    }
  check_drawn(&engines[nengines]);
  nengines++;
  close_engines(state);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_jax), cmocka_unit_test(in_single),
                                     cmocka_unit_test(sizes_have_ends), cmocka_unit_test(on_cpu),
                                     cmocka_unit_test(over_padding)};
  const struct CMUnitTest one[] = {cmocka_unit_test(on_gpu)};
  if (argc > 1) gpu = argv[1];
  return gpu ? gpu_status(cmocka_run_group_tests_name("conv on a GPU", one, NULL, NULL))
             : cmocka_run_group_tests_name("conv", tests, NULL, NULL);
}

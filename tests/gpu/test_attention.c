/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and its derivatives in f32, by tiles and by tensor cores, against the interpreter in f64, which is checked
 * against JAX elsewhere. q, k and v are small integers, so that products and scores are exact in TF32; what is rounded
 * there are the weights, each by less than 2^-11, above and below the line: the result is off by at most twice that, of
 * the greatest value. Where NaN stands, some rows do not see it. */
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/ops/check.h"
#include "tests/support/cases.h"
#include "tests/support/elements.h"
#include "tests/support/eval.h"
#include "tests/support/fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct row {
  int64_t batch, queries, keys, heads, size, values;
  bool causal, masked, odd;
} rows[] = {
    {1, 1, 1, 1, 1, 1, false, false, false},      {2, 5, 7, 3, 4, 6, false, false, false},
    {1, 130, 130, 2, 20, 24, true, false, false}, {1, 33, 70, 1, 64, 33, false, true, false},
    {1, 140, 90, 1, 8, 100, true, true, false},   {1, 40, 40, 2, 32, 32, true, false, true},
    {1, 20, 20, 1, 128, 4, true, true, true},     {2, 3, 0, 1, 4, 4, false, false, false},
    {1, 129, 200, 1, 17, 3, false, false, true},  {1, 70, 90, 1, 60, 64, true, true, true},
    {1, 20, 40, 2, 130, 9, true, true, true}, /* too wide for tiles */
};

static const char *gpu;

static void fill(struct tensor *t, int seed, bool odd) {
  int64_t count = type_count(&t->type);
  for (int64_t i = 0; i < count; i++)
    tensor_set(t, i, (double)((i * 37 + i * i % 13 * 5 + seed * 53 + 11) % 9 - 4));
  if (odd && count) tensor_set(t, count - 1, NAN);
}

static void fill_first(struct tensor *t, int seed, bool odd) {
  fill(t, seed, false);
  if (odd && type_count(&t->type)) tensor_set(t, 0, NAN);
}

/* A row in five sees nothing, else one key in three is hidden. */
static void fill_mask(struct tensor *t, int keys, bool odd) {
  (void)odd;
  for (int64_t i = 0; i < type_count(&t->type); i++) tensor_set(t, i, i / keys % 5 != 3 && i % 3 != 1);
}

enum what { TENSOR_CORES, PLAIN, GRADIENT, GRADIENT_TENSOR_CORES, WHAT_COUNT };

static struct graph *row_graph(struct arena *a, const struct row *r, enum what what, enum dtype d,
                               struct values *variables, struct diags *diags) {
  struct graph *g = graph_create(a, "attention", diags);
  struct type q = type_make(d, 4, (int64_t[]){r->batch, r->queries, r->heads, r->size});
  struct type k = type_make(d, 4, (int64_t[]){r->batch, r->keys, r->heads, r->size});
  struct type v = type_make(d, 4, (int64_t[]){r->batch, r->keys, r->heads, r->values});
  struct type m = type_make(DT_BOOL, 4, (int64_t[]){1, r->heads, r->queries, r->keys});
  struct type dy = type_make(d, 4, (int64_t[]){r->batch, r->queries, r->heads, r->values});
  bool back = what >= GRADIENT;
  int count = 3;
  struct node *in[6] = {check_leaf(g, fill_first, "q", &q, 1, r->odd && back, variables),
                        check_leaf(g, fill, "k", &k, 2, r->odd && back, variables),
                        check_leaf(g, fill, "v", &v, 3, r->odd, variables)};
  if (back) {
    in[count++] = check_leaf(g, fill, "y", &dy, 4, false, variables);
    in[count++] = check_leaf(g, fill_first, "dy", &dy, 5, r->odd, variables);
  }
  if (r->masked) in[count++] = check_leaf(g, fill_mask, "mask", &m, (int)r->keys, false, variables);
  struct attr causal = attr_int(ATTR_causal, 1);
  struct node *y = build(g, back ? OP_attention_gradient : OP_attention, count, in, r->causal, &causal, NULL);
  if (!y) fail_msg("%s", diags_text(diags, false));
  graph_add_output(g, OUTPUT_VALUE, "y", y, 0);
  g->config.batch = 1;
  return g;
}

/* Of f32, of the greatest number of the result. */
static double most_off(enum what what, const struct tensor *want) {
  double greatest = 0;
  for (int64_t e = 0; e < type_count(&want->type); e++)
    greatest = fmax(greatest, fabs(((const double *)want->data)[e]));
  if (what == TENSOR_CORES) return 2 * 4 * 0x1p-11;
  return (what == GRADIENT ? 0x1p-16 : 0x1p-11) * greatest;
}

static void check_row(int i, enum what what) {
  const struct row *r = &rows[i];
  struct arena *a = arena_create();
  struct diags diags;
  diags_init(&diags, a);
  struct values none = values_make(a), wide = values_make(a), variables = values_make(a),
                found = values_make(a);
  struct graph *exact = row_graph(a, r, what, DT_F64, &wide, &diags),
               *g = row_graph(a, r, what, DT_F32, &variables, &diags);
  struct tensor *values = arena_new_array(a, exact->count, struct tensor);
  assert_true(graph_eval(a, exact, &none, &wide, values));
  target_parse(a, gpu, &g->config.target, &diags, LOC_NONE);
  struct plan *p = engine_plan(a, g, &diags);
  engines_allow_tf32(engines[nengines].engines, what == TENSOR_CORES || what == GRADIENT_TENSOR_CORES);
  if (!p || !engine_run(&engines[nengines], p, &none, &variables, &found, 1, &diags))
    fail_msg("%d: %s", i, diags_text(&diags, false));
  const struct tensor *want = output_value(exact, values, "y"), *got = values_get(&found, "y");
  double most = most_off(what, want);
  for (int64_t e = 0; e < type_count(&want->type); e++) {
    double x = ((const double *)want->data)[e], y = (double)((const float *)got->data)[e];
    if (isnan(x) != isnan(y) || fabs(x - y) > most)
      fail_msg("row %d, %d: element %lld is %.9g, not %.9g", i, what, (long long)e, y, x);
  }
  arena_destroy(a);
}

static void on_gpu(void **state) {
  bool simulated;
  if (!gpus_found(&simulated)) skip();
  assert_true(engine_open_on(&engines[nengines], "cuda", gpu, 1));
  for (int i = 0; i < CASE_COUNT(rows); i++)
    for (enum what what = 0; what < WHAT_COUNT; what++) check_row(i, what);
  nengines++;
  close_engines(state);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_gpu)};
  gpu = argc > 1 ? argv[1] : "gpu:0";
  return gpu_status(cmocka_run_group_tests_name("attention on a GPU", tests, NULL, NULL));
}

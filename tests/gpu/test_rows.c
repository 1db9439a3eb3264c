/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_add on a GPU, against the interpreter, to the bit: it adds in the same order. Some rows are named often,
 * some never, some numbers name none. */
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/ops/check.h"
#include "tests/support/cases.h"
#include "tests/support/elements.h"
#include "tests/support/eval.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct row {
  int64_t rows, count, width;
  enum dtype dtype, index;
} rows[] = {
    {5, 3, 7, DT_F32, DT_I32},       {3, 40, 1, DT_F64, DT_I64},        {9, 8200, 33, DT_F32, DT_I32},
    {70, 70, 129, DT_F32, DT_U8},    {300, 290, 130, DT_F32, DT_I64},   {2, 4096, 300, DT_I32, DT_U8},
    {4500, 4097, 2, DT_F32, DT_I32}, {1, 0, 4, DT_F32, DT_I32},         {0, 4, 4, DT_F32, DT_I32},
    {4200, 4300, 2, DT_I64, DT_I32}, {1100, 1030, 140, DT_F32, DT_I32},
};

static const char *gpu;
static int64_t table; /* rows of the case */

static void fill(struct tensor *t, int seed, bool odd) {
  (void)odd;
  for (int64_t i = 0; i < type_count(&t->type); i++)
    tensor_set(t, i, (double)((i * 37 + i * i % 13 * 5 + seed * 53) % 1009 - 500) / 8 + (double)(i % 7) / 64);
}

/* Half of them the first row, one in eight no row. */
static void fill_index(struct tensor *t, int seed, bool odd) {
  (void)odd;
  for (int64_t i = 0; i < type_count(&t->type); i++) {
    int64_t other = table ? (i * 7919 + seed) % table : 0, none = t->type.dtype == DT_U8 ? 255
                                                                  : i % 16               ? -1
                                                                                         : table;
    tensor_set(t, i, (double)(i % 8 == 3 ? none : i % 2 ? other : 0));
  }
}

static struct graph *row_graph(struct arena *a, const struct row *r, struct values *variables,
                               struct diags *diags) {
  struct graph *g = graph_create(a, "rows", diags);
  struct type x = type_make(r->dtype, 2, (int64_t[]){r->rows, r->width});
  struct type index = type_make(r->index, 1, (int64_t[]){r->count});
  struct type values = type_make(r->dtype, 2, (int64_t[]){r->count, r->width});
  table = r->rows;
  struct node *to = check_leaf(g, fill, "x", &x, 1, false, variables);
  struct node *by = check_leaf(g, fill_index, "index", &index, 2, false, variables);
  struct node *from = check_leaf(g, fill, "values", &values, 3, false, variables);
  struct node *y = build3(g, OP_scatter_add, to, by, from);
  if (!y) fail_msg("%s", diags_text(diags, false));
  graph_add_output(g, OUTPUT_VALUE, "y", y, 0);
  g->config.batch = 1;
  return g;
}

static void check_row(int i) {
  const struct row *r = &rows[i];
  struct arena *a = arena_create();
  struct diags diags;
  diags_init(&diags, a);
  struct values none = values_make(a), variables = values_make(a), found = values_make(a);
  struct graph *g = row_graph(a, r, &variables, &diags);
  struct tensor *values = arena_new_array(a, g->count, struct tensor);
  assert_true(graph_eval(a, g, &none, &variables, values));
  const struct tensor *want = output_value(g, values, "y");
  target_parse(a, gpu, &g->config.target, &diags, LOC_NONE);
  struct plan *p = engine_plan(a, g, &diags);
  if (!p || !engine_run(&engines[nengines], p, &none, &variables, &found, 1, &diags))
    fail_msg("%d: %s", i, diags_text(&diags, false));
  const struct tensor *got = values_get(&found, "y");
  if (type_bytes(&want->type) && memcmp(want->data, got->data, (size_t)type_bytes(&want->type)) != 0)
    fail_msg("row %d", i);
  arena_destroy(a);
}

static void on_gpu(void **state) {
  bool simulated;
  if (!gpus_found(&simulated)) skip();
  assert_true(engine_open_on(&engines[nengines], "cuda", gpu, 1));
  for (int i = 0; i < CASE_COUNT(rows); i++) check_row(i);
  nengines++;
  close_engines(state);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_gpu)};
  gpu = argc > 1 ? argv[1] : "gpu:0";
  return gpu_status(cmocka_run_group_tests_name("rows on a GPU", tests, NULL, NULL));
}

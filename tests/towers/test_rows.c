/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of a data set each tower gets: files through the loader and the whole compiler, for every strategy.
 * The model's input is the number of each row, or what is in it; every tower's slice of it is made a result of the
 * placed graph. */
#include "passes/pass.h"
#include "runtime/data/data.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Something is trained, so that parameter servers have something to do. */
#define MODEL(type, axes)                        \
  "graph rows {\n"                               \
  " x = input : " type "\n"                      \
  " c = variable {trainable=1} : f64[]\n"        \
  " c.rows = broadcast c {axes=[]} : " type "\n" \
  " y = mul x, c.rows\n"                         \
  " total = reduce_sum y {axes=" axes "}\n"      \
  " c.next = add c, total\n"                     \
  " c.update = assign c, c.next\n"               \
  " loss loss = total\n"                         \
  " update c.update\n"                           \
  "}\n"

/* A model, its data and the type of a row. */
struct rows {
  const char *model, *folder, *path;
  struct type row;
};

static struct graph *parse(struct arena *a, const char *text, struct diags *d) {
  struct graph *g = graph_parse(a, source_make(a, "rows", text, strlen(text)), d);
  if (!g || !graph_verify(g, "parse", d)) fail_msg("%s\n%s", text, diags_text(d, false));
  return g;
}

/* The placed graph for a batch of `rows`, with each tower's slice of x as the result rows.<tower>. */
static struct plan *plan_that_shows_rows(struct arena *a, const char *model, const struct layout *l,
                                         int64_t rows, struct diags *d) {
  struct graph *g = parse(a, model, d);
  layout_set(g, l, rows, d);
  g = pipeline_run(a, g, NULL, "place", &(struct pipeline_options){.verify_each = true}, d);
  if (!g) fail_msg("%s: %s", layout_text(a, l), diags_text(d, false));
  const char *placed = graph_text(a, g);
  struct str s = str_make(a);
  str_printf(&s, "%.*s", (int)(strrchr(placed, '}') - placed), placed);
  for (int t = 0; t < l->towers; t++)
    str_printf(&s, "  value rows.%d = %s\n", t,
               l->towers == 1 ? "x" : arena_printf(a, t ? "tower_%d/split_inputs/x" : "split_inputs/x", t));
  str_put(&s, "}\n");
  struct plan *p = engine_plan(a, parse(a, s.data, d), d);
  if (!p) fail_msg("%s: %s\n%s", layout_text(a, l), diags_text(d, false), s.data);
  return p;
}

/* A tower's numbers, "0 1 "; of rows of several numbers the places of those that are not zero,
 * "[2,4] (0,0) (1,2) ". */
static void show_tower(struct str *out, const struct tensor *t) {
  const double *numbers = t->data;
  int64_t count = type_count(&t->type), width = t->type.rank == 2 ? t->type.dim[1] : 1;
  if (t->type.rank == 2) str_printf(out, "[%d,%d] ", (int)t->type.dim[0], (int)width);
  for (int64_t i = 0; i < count; i++) {
    if (t->type.rank == 1)
      str_printf(out, "%d ", (int)numbers[i]);
    else if (numbers[i] != 0)
      str_printf(out, "(%d,%d) ", (int)(i / width), (int)(i % width));
  }
}

/* "0 1 | 2 3": the rows of each tower in one step. */
static void show_step(struct str *out, struct engine *e, const char *model, const struct layout *l,
                      const struct batch *b) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  const struct plan *p = plan_that_shows_rows(a, model, l, b->rows, &d);
  struct values inputs = values_make(a), variables = values_make(a), results = values_make(a);
  double one = 1;
  struct type scalar = type_scalar(DT_F64);
  values_put(&inputs, "x", &b->columns[0].type, b->columns[0].data);
  values_put(&variables, "c", &scalar, &one);
  if (!engine_run(e, p, &inputs, &variables, &results, 1, &d))
    fail_msg("%s: %s", layout_text(a, l), diags_text(&d, false));
  for (int t = 0; t < l->towers; t++) {
    const struct tensor *rows = values_get(&results, arena_printf(a, "rows.%d", t));
    assert_non_null(rows);
    if (t) str_put(out, "| ");
    show_tower(out, rows);
  }
  str_put(out, b->last ? "." : "/ ");
  arena_destroy(a);
}

/* One epoch as the towers of this layout see it. */
static const char *epoch(struct world *w, struct engine *e, const struct layout *l, const struct rows *rows,
                         int64_t batch) {
  struct data_spec spec = {.name = "x", .path = rows->path};
  struct dataset *ds = dataset_open(w->arena, rows->folder, &spec, 1, NULL, &w->diags);
  assert_non_null(ds);
  assert_true(dataset_expect(ds, "x", &rows->row, &w->diags));
  struct loader_options o = {.batch = batch, .epochs = 1};
  struct loader *loader = loader_create(w->arena, ds, &o, &w->diags);
  struct str s = str_make(w->arena);
  const struct batch *b;
  while (loader_next(loader, &b, &w->diags) == LOADER_BATCH) {
    show_step(&s, e, rows->model, l, b);
    loader_release(loader, b);
  }
  assert_int_equal(w->diags.nerrors, 0);
  loader_destroy(loader);
  dataset_close(ds);
  return s.data;
}

static void everywhere(struct world *w, const struct rows *rows, int towers, int64_t batch,
                       const char *want) {
  struct layout all[MAX_LAYOUTS];
  int n = layouts_of(towers, all);
  for (int e = 0; e < nengines; e++)
    for (int i = 0; i < n; i++) {
      const char *got = epoch(w, &engines[e], &all[i], rows, batch);
      if (strcmp(got, want) != 0)
        fail_msg("%s, %s: got  %s\nwant %s", layout_text(w->arena, &all[i]), engines[e].backend->name, got,
                 want);
    }
}

/* Rows "0", "1", ... */
static void for_every_strategy(struct world *w, int towers, int count, int64_t batch, const char *want) {
  FILE *f = fopen(in_folder(w, "x.csv"), "w");
  assert_non_null(f);
  for (int i = 0; i < count; i++) fprintf(f, "%d\n", i);
  fclose(f);
  struct rows rows = {MODEL("f64[B]", "[0]"), w->folder, "x.csv:1", type_scalar(DT_F64)};
  everywhere(w, &rows, towers, batch, want);
}

/* R13 */
static void r13_equal_slices(void **state) {
  for_every_strategy(*state, 2, 4, 4, "0 1 | 2 3 .");
  for_every_strategy(*state, 4, 4, 4, "0 | 1 | 2 | 3 .");
  for_every_strategy(*state, 1, 4, 4, "0 1 2 3 .");
}

static void s4_rebatch_partial_last_batches(void **state) {
  for_every_strategy(*state, 2, 5, 4, "0 1 | 2 3 / 4 | .");
  for_every_strategy(*state, 3, 6, 4, "0 1 | 2 | 3 / 4 | 5 | .");
}

static void s4_rebatch_fewer_rows_than_towers(void **state) {
  for_every_strategy(*state, 5, 4, 4, "0 | 1 | 2 | 3 | .");
  for_every_strategy(*state, 5, 5, 4, "0 | 1 | 2 | 3 | / 4 | | | | .");
}

static void s4_rebatch_uneven_batches(void **state) { for_every_strategy(*state, 3, 4, 4, "0 1 | 2 | 3 ."); }

/* R14, R15: a sparse matrix is cut by rows, which are numbered anew in each tower. */
static void r14_r15_sparse_rows(void **state) {
  int64_t four = 4;
  struct rows rows = {MODEL("f64[B,4]", "[0, 1]"), TEST_DATA, "sparse.npz", type_make(DT_F64, 1, &four)};
  everywhere(*state, &rows, 2, 3, "[2,4] (0,0) (1,2) | [1,4] (0,2) .");
  everywhere(*state, &rows, 2, 2, "[1,4] (0,0) | [1,4] (0,2) / [1,4] (0,2) | [0,4] .");
  rows.path = "sparse_top.npz";
  everywhere(*state, &rows, 2, 3, "[2,4] (0,0) (1,0) (1,1) | [1,4] .");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(r13_equal_slices), TEST(s4_rebatch_partial_last_batches),
                                     TEST(s4_rebatch_fewer_rows_than_towers), TEST(s4_rebatch_uneven_batches),
                                     TEST(r14_r15_sparse_rows)};
  return cmocka_run_group_tests(tests, open_engines, close_engines);
}

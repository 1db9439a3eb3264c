/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of all sizes arrive on a GPU as they are: those that go straight to their place, in pieces, and in pieces that
 * several threads fill; two at once, and again with other numbers, when slots have been used; and more than there are
 * slots. Likewise from memory that is pinned already. */
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/support/engine.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *devices;

enum { MOST = 9000001, RUNS = 4, STEP = 97 };

/* Less and more than 32 KiB, 512 KiB, 1 MiB, 16 and several pieces of that, and, both together, 64: in i32, to the
 * element. First many pieces, while there are no slots yet. */
static const int64_t counts[] = {4194305, 1,      8191,   8192,    8193,    16385,   131071,  131073,
                                 262143,  262144, 262145, 1048577, 2097152, 4194304, 5000003, MOST};

/* What x and y are, from a place on that is another in each run; and what their difference is to be. Copied and
 * compared as a whole: a sanitizer of threads looks at each access of a loop, and there is nothing to see in these. */
static int32_t *all_x, *all_y, *all_z;

static __attribute__((no_sanitize("thread"))) void fill_all(void) {
  size_t count = MOST + RUNS * STEP;
  all_x = malloc(3 * count * sizeof *all_x);
  assert_non_null(all_x);
  all_y = all_x + count, all_z = all_y + count;
  for (size_t i = 0; i < count; i++) {
    all_x[i] = (int32_t)((uint32_t)i * 2654435761u), all_y[i] = (int32_t)((uint32_t)(i / 3) * 2654435761u);
    all_z[i] = (int32_t)((uint32_t)all_x[i] - (uint32_t)all_y[i]);
  }
}

/* x - y */
static struct plan *difference(struct arena *a, const struct type *t, struct diags *d) {
  struct graph *g = graph_create(a, "inputs", d);
  g->config.batch = 1;
  target_parse(a, devices, &g->config.target, d, LOC_NONE);
  graph_add_output(g, OUTPUT_VALUE, "z", build2(g, OP_sub, build_input(g, "x", t), build_input(g, "y", t)),
                   0);
  struct plan *p = engine_plan(a, g, d);
  if (!p) fail_msg("%s", diags_text(d, false));
  return p;
}

static void make_numbers(int32_t *x, int32_t *y, int64_t count, int run) {
  memcpy(x, all_x + run * STEP, (size_t)count * sizeof *x);
  memcpy(y, all_y + run * STEP, (size_t)count * sizeof *y);
}

static void check_numbers(const int32_t *z, int64_t count, int run) {
  const int32_t *want = all_z + run * STEP;
  if (memcmp(z, want, (size_t)count * sizeof *z) == 0) return;
  for (int64_t i = 0; i < count; i++)
    if (z[i] != want[i])
      fail_msg("of %lld, number %lld is %d in run %d, not %d", (long long)count, (long long)i, z[i], run,
               want[i]);
}

static void check(struct engine *e, int64_t count) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct type t = {.dtype = DT_I32, .rank = 1, .dim = {count}};
  struct plan *p = difference(a, &t, &d);
  int32_t *x = arena_new_array(a, (size_t)count, int32_t), *y = arena_new_array(a, (size_t)count, int32_t);
  for (int run = 0; run < 2; run++) {
    struct values inputs = values_make(a), variables = values_make(a), outputs = values_make(a);
    make_numbers(x, y, count, run);
    values_put(&inputs, "x", &t, x);
    values_put(&inputs, "y", &t, y);
    if (!engine_run(e, p, &inputs, &variables, &outputs, 2, &d)) fail_msg("%s", diags_text(&d, false));
    check_numbers(values_get(&outputs, "z")->data, count, run);
  }
  arena_destroy(a);
}

/* Memory that was pinned for inputs is used again, or given back, at the first moment at which that is allowed. */
static void check_pinned(struct engine *e, int64_t count) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct type t = {.dtype = DT_I32, .rank = 1, .dim = {count}};
  struct plan *p = difference(a, &t, &d);
  struct store *s = store_create(e->engines);
  struct exec *x = exec_load(p, e->engines, s, e->workers, &d);
  size_t bytes = (size_t)count * sizeof(int32_t);
  int32_t *pinned = engines_pinned_alloc(e->engines, 2 * bytes), *z = arena_alloc(a, bytes);
  if (!x || !pinned) fail_msg("%s", diags_text(&d, false));
  int first = strcmp(p->inputs[0].name, "x") == 0 ? 0 : 1;
  for (int run = 0; run < RUNS; run++) {
    make_numbers(pinned, pinned + count, count, run);
    bool good = exec_write(x, first, pinned) && exec_write(x, 1 - first, pinned + count);
    if (run == RUNS - 1) { /* the next one may be given the same */
      engines_pinned_free(e->engines, pinned);
      pinned = engines_pinned_alloc(e->engines, 2 * bytes);
      memset(pinned, 0x5a, 2 * bytes);
    }
    good = good && exec_run(x);
    memset(pinned, 0x5a, 2 * bytes);
    good = good && exec_read(x, 0, z);
    if (!good) {
      exec_status(x, &d);
      fail_msg("%s", diags_text(&d, false));
    }
    check_numbers(z, count, run);
  }
  engines_pinned_free(e->engines, pinned);
  exec_unload(x);
  store_destroy(s);
  arena_destroy(a);
}

static void arrive(void **state) {
  struct engine e;
  bool simulated;
  (void)state;
  if (!gpus_found(&simulated)) skip();
  assert_true(engine_open_on(&e, "cuda", devices, 1));
  fill_all();
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    check(&e, counts[i]);
    check_pinned(&e, counts[i]);
  }
  engine_close(&e);
  free(all_x);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arrive)};
  devices = argc > 1 ? argv[1] : "gpu:0";
  return gpu_status(cmocka_run_group_tests(tests, NULL, NULL));
}

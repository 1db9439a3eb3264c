/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of all sizes arrive on a GPU as they are: those that go straight to their place, in pieces, and in pieces that
 * several threads fill; two at once, and again with other numbers, when slots have been used. */
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

/* Less and more than 32 KiB, 512 KiB, 1 MiB, and pieces of 4 MiB: in i32, to the element. */
static const int64_t counts[] = {1,      8191,    8192,    8193,    131071,  131073, 262144,
                                 262145, 1048575, 1048576, 1048577, 2097152, 5000003};

static int32_t number(int64_t i, int run) {
  return (int32_t)((uint32_t)i * 2654435761u + (uint32_t)run * 97u);
}

static void check(struct engine *e, int64_t count) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_create(a, "inputs", &d);
  struct type t = {.dtype = DT_I32, .rank = 1, .dim = {count}};
  g->config.batch = 1;
  target_parse(a, devices, &g->config.target, &d, LOC_NONE);
  graph_add_output(g, OUTPUT_VALUE, "z", build2(g, OP_sub, build_input(g, "x", &t), build_input(g, "y", &t)),
                   0);
  struct plan *p = engine_plan(a, g, &d);
  if (!p) fail_msg("%s", diags_text(&d, false));
  int32_t *x = arena_new_array(a, (size_t)count, int32_t), *y = arena_new_array(a, (size_t)count, int32_t);
  for (int run = 0; run < 2; run++) {
    struct values inputs = values_make(a), variables = values_make(a), outputs = values_make(a);
    for (int64_t i = 0; i < count; i++) x[i] = number(i, run), y[i] = number(i / 3, run + 5);
    values_put(&inputs, "x", &t, x);
    values_put(&inputs, "y", &t, y);
    if (!engine_run(e, p, &inputs, &variables, &outputs, 2, &d)) fail_msg("%s", diags_text(&d, false));
    const int32_t *z = values_get(&outputs, "z")->data;
    for (int64_t i = 0; i < count; i++)
      if (z[i] != (int32_t)((uint32_t)x[i] - (uint32_t)y[i]))
        fail_msg("of %lld, number %lld is %d", (long long)count, (long long)i, z[i]);
  }
  arena_destroy(a);
}

static void arrive(void **state) {
  struct engine e;
  bool simulated;
  (void)state;
  if (!gpus_found(&simulated)) skip();
  assert_true(engine_open_on(&e, "cuda", devices, 1));
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) check(&e, counts[i]);
  engine_close(&e);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arrive)};
  devices = argc > 1 ? argv[1] : "gpu:0";
  return gpu_status(cmocka_run_group_tests(tests, NULL, NULL));
}

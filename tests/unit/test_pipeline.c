/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline keeps the last graph alone: what stood between lies in no arena of the caller's. */
#include "passes/pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char model[] = "graph m.train {\n"
                            "  stage source\n"
                            "  x = input : f32[B,4]\n"
                            "  w = variable {trainable=1} : f32[4]\n"
                            "  wb = broadcast w {axes=[1]} : f32[B,4]\n"
                            "  p = mul x, wb : f32[B,4]\n"
                            "  q = tanh p : f32[B,4]\n"
                            "  loss = reduce_sum q {axes=[0, 1]} : f32[]\n"
                            "  w.grad = gradient loss, w : f32[4]\n"
                            "  next = sub w, w.grad : f32[4]\n"
                            "  w.update = assign w, next : f32[4]\n"
                            "  loss loss\n"
                            "  update w.update\n"
                            "}\n";

struct fixture {
  struct arena *arena, *first, *second;
  struct diags diags;
};

static int setup(void **state) {
  static struct fixture f;
  f = (struct fixture){arena_create(), arena_create(), arena_create(), {0}};
  diags_init(&f.diags, f.arena);
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  arena_destroy(f->arena);
  arena_destroy(f->first);
  arena_destroy(f->second);
  return 0;
}

static struct graph *source(struct fixture *f) {
  struct graph *g = graph_parse(f->arena, source_make(f->arena, "m", model, strlen(model)), &f->diags);
  assert_non_null(g);
  g->config.batch = 64;
  g->config.towers = 8;
  assert_true(target_parse(f->arena, "cpu:0-3", &g->config.target, &f->diags, LOC_NONE));
  return g;
}

static const char *text(struct fixture *f, const struct graph *g) {
  struct str s = str_make(f->arena);
  graph_print(&s, g);
  return s.data;
}

/* All passes into one arena leave there what the last one alone leaves in another. */
static void graphs_between_die(void **state) {
  struct fixture *f = *state;
  static const char *const last[] = {"simplify",    "grad",   "replicate", "place",
                                     "collectives", "copies", "fuse"};
  for (int i = 1; i < 7; i++) {
    struct graph *whole = pipeline_run(f->first, source(f), NULL, last[i], NULL, &f->diags);
    struct graph *before = pipeline_run(f->arena, source(f), NULL, last[i - 1], NULL, &f->diags);
    assert_non_null(whole);
    assert_non_null(before);
    struct graph *step = pipeline_run(f->second, before, last[i], NULL, NULL, &f->diags);
    assert_non_null(step);
    assert_string_equal(text(f, whole), text(f, step));
    size_t slack = 256; /* the list of passes */
    assert_in_range(arena_used(f->first), 1, arena_used(f->second) + slack);
    arena_reset(f->first);
    arena_reset(f->second);
  }
}

/* A pass with nothing to do gives back what it read, which must not die with the arenas between. */
static void nothing_to_do(void **state) {
  struct fixture *f = *state;
  struct graph *expanded = pipeline_run(f->first, source(f), "simplify,grad", NULL, NULL, &f->diags);
  assert_non_null(expanded);
  const char *want = text(f, expanded);
  struct graph *same = pipeline_run(f->second, expanded, "simplify,grad", NULL, NULL, &f->diags);
  assert_non_null(same);
  arena_reset(f->first);
  assert_string_equal(text(f, same), want);
  same = pipeline_run(f->first, same, "grad,grad", NULL, NULL, &f->diags);
  assert_string_equal(text(f, same), want);
}

/* Each row of order.def is kept by passes.def, and says why when it is not kept: there, and in a list of the user's. */
static void order(void **state) {
  struct fixture *f = *state;
  static const char *const table[] = {
#define PASS(name, from, to, help) #name,
#include "passes/passes.def"
#undef PASS
  };
  static const char *const rows[][3] = {
#define BEFORE(first, then, reason) {#first, #then, reason},
#include "passes/order.def"
#undef BEFORE
  };
  enum { PASSES = sizeof table / sizeof *table, ROWS = sizeof rows / sizeof *rows };
  assert_null(pipeline_order(f->arena, table, PASSES));
  for (int r = 0; r < ROWS; r++) {
    const char *moved[PASSES];
    int n = 0;
    for (int i = 0; i < PASSES; i++) {
      if (strcmp(table[i], rows[r][0]) == 0) continue;
      moved[n++] = table[i];
      if (strcmp(table[i], rows[r][1]) == 0) moved[n++] = rows[r][0];
    }
    assert_int_equal(n, PASSES);
    assert_non_null(pipeline_order(f->arena, moved, n));
    const char *breach = pipeline_order(f->arena, (const char *[]){rows[r][1], rows[r][0]}, 2);
    assert_non_null(strstr(breach, rows[r][2]));
    assert_null(pipeline_order(f->arena, (const char *[]){rows[r][0], rows[r][1], rows[r][0]}, 3));
    const char *list = arena_printf(f->arena, "%s,%s", rows[r][1], rows[r][0]);
    assert_null(pipeline_run(f->first, source(f), list, NULL, NULL, &f->diags));
    assert_non_null(strstr(diags_text(&f->diags, false), rows[r][2]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(graphs_between_die, setup, teardown),
      cmocka_unit_test_setup_teardown(nothing_to_do, setup, teardown),
      cmocka_unit_test_setup_teardown(order, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

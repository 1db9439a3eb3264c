/* SPDX-License-Identifier: Apache-2.0 */
/* Law 1 and law 5 on random models: N towers compute what the model says for the whole batch, within bound.h, and
 * for a fixed N the bits depend neither on devices nor on strategy nor on threads. TEST_GRAPHS=N runs N times as
 * many; TEST_SEED=S that one. */
#include "passes/pass.h"
#include "tests/support/expect.h"
#include "tests/support/fixture.h"
#include "tests/support/graphs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 2

static struct engine engine;

static int open_engine(void **state) {
  (void)state;
  return !engine_open(&engine, NULL, 2);
}

static int close_engine(void **state) {
  (void)state;
  engine_close(&engine);
  return 0;
}

/* A random model with all that is needed to run it. */
struct subject {
  struct arena *arena;
  struct diags diags;
  struct model_options o;
  int64_t rows;
  struct graph *g;
  struct values inputs, before;
};

static void make_subject(struct subject *s, uint64_t seed, int size) {
  static const int64_t rows[] = {1, 2, 3, 5, 7, 8, 13, 17};
  *s = (struct subject){.arena = arena_create(), .rows = rows[seed % 8]};
  s->o = (struct model_options){
      .seed = seed, .size = size, .batch = true, .updates = true, .annotated = seed % 2};
  diags_init(&s->diags, s->arena);
  s->g = random_model(s->arena, &s->o, &s->diags).g;
  model_values(s->arena, s->g, s->rows, seed, false, &s->inputs, &s->before);
}

/* Runs the model on a layout: outputs and variables after `steps`. NULL or what went wrong. */
static const char *run_on(struct subject *s, const struct layout *l, int steps, struct values *outputs,
                          struct values *after) {
  struct arena *a = s->arena;
  layout_set(s->g, l, s->rows, &s->diags);
  s->g->config.soft_placement = true; /* the model may ask for devices that the layout has not */
  struct plan *p = engine_plan(a, s->g, &s->diags);
  *outputs = values_make(a);
  *after = values_copy(a, &s->before);
  if (p && engine_run(&engine, p, &s->inputs, after, outputs, steps, &s->diags)) return NULL;
  return arena_printf(a, "%s\n%s", layout_text(a, l), diags_text(&s->diags, false));
}

static const char *global_view(struct subject *s) {
  static const int towers[] = {1, 2, 3, 4, 5, 8};
  struct arena *a = s->arena;
  struct expectation want;
  if (!expect_step(a, s->g, s->rows, &s->inputs, &s->before, &s->diags, &want))
    return diags_text(&s->diags, false);
  for (int i = 0; i < 6; i++) {
    struct layout all[MAX_LAYOUTS];
    int n = layouts_of(towers[i], all);
    const struct layout *l = &all[(s->o.seed + (unsigned)i) % (unsigned)n];
    struct values outputs, after;
    const char *wrong = run_on(s, l, 1, &outputs, &after);
    if (!wrong) wrong = expect_breach(a, &want, &s->before, &outputs, &after);
    if (wrong) return arena_printf(a, "%s: %s", layout_text(a, l), wrong);
  }
  return NULL;
}

static const char *same_bits(struct subject *s) {
  struct arena *a = s->arena;
  struct layout all[MAX_LAYOUTS];
  int n = layouts_of(1 + (int)(s->o.seed % 8), all);
  struct values outputs[2], after[2];
  for (int i = 0; i < n; i++) {
    bool other = i > 0;
    const char *wrong = run_on(s, &all[i], STEPS, &outputs[other], &after[other]);
    if (!wrong && other) wrong = values_difference(a, &outputs[0], &outputs[1]);
    if (!wrong && other) wrong = values_difference(a, &after[0], &after[1]);
    if (wrong)
      return arena_printf(a, "%s, not as %s: %s", layout_text(a, &all[i]), layout_text(a, &all[0]), wrong);
  }
  return NULL;
}

typedef const char *check_fn(struct subject *s);

static void check_model(check_fn *check, uint64_t seed, int size) {
  struct subject s;
  make_subject(&s, seed, size);
  const char *wrong = check(&s);
  arena_destroy(wrong ? NULL : s.arena);
  if (!wrong) return;
  for (int n = 0; n <= size; n++) { /* the smallest beginning that fails */
    make_subject(&s, seed, n);
    wrong = check(&s);
    if (wrong) {
      fprintf(stderr, "seed %llu, size %d, %lld rows: %s\n%s", (unsigned long long)seed, n, (long long)s.rows,
              wrong, graph_text(s.arena, s.g));
      fail();
    }
    arena_destroy(s.arena);
  }
}

static void run(check_fn *check, uint64_t first, int count, int size) {
  uint64_t seed = number_from("TEST_SEED", 0);
  count *= (int)number_from("TEST_GRAPHS", 1);
  for (int i = 0; i < (seed ? 1 : count); i++) check_model(check, seed ? seed : first + (uint64_t)i, size);
}

static void towers_compute_the_model(void **state) {
  (void)state;
  run(global_view, 5000, 40, 20);
}

static void layouts_do_not_show(void **state) {
  (void)state;
  run(same_bits, 6000, 24, 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(towers_compute_the_model),
                                     cmocka_unit_test(layouts_do_not_show)};
  return cmocka_run_group_tests(tests, open_engine, close_engine);
}

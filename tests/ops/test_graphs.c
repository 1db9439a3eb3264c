/* SPDX-License-Identifier: Apache-2.0 */
/* Random models through the whole compiler: each backend against the oracle, within bound.h, and backends against
 * each other, bit for bit. Gradients of random expressions against finite differences. TEST_GRAPHS=N runs N times
 * as many; TEST_SEED=S that one. */
#include "tests/support/expect.h"
#include "tests/support/finite.h"
#include "tests/support/fixture.h"
#include "tests/support/graphs.h"

#include "passes/pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The backend that has machine code, on one thread. */
static struct engine alone;
static bool has_alone;

static int64_t exact, inside, unknown;

/* One model of this size; what is wrong, or NULL. Lives in `a`. */
typedef const char *try_fn(struct arena *a, uint64_t seed, int size, const char **text);

static const char *backends_on(struct arena *a, const struct model_options *o, int64_t rows,
                               const char **text) {
  struct diags d;
  diags_init(&d, a);
  struct model m = random_model(a, o, &d);
  *text = graph_text(a, m.g);
  if (d.nerrors) return diags_text(&d, false);
  m.g->config.batch = rows;
  struct values inputs, before;
  model_values(a, m.g, rows, o->seed, false, &inputs, &before);
  struct expectation want;
  if (!expect_step(a, m.g, rows, &inputs, &before, &d, &want))
    return arena_printf(a, "no oracle\n%s", diags_text(&d, false));
  struct plan *p = engine_plan(a, m.g, &d);
  if (!p) return arena_printf(a, "no plan\n%s", diags_text(&d, false));
  exact += want.exact, inside += want.inside, unknown += want.unknown;
  struct values outputs[2], after[2];
  for (int i = 0; i < nengines; i++) {
    outputs[i] = values_make(a);
    after[i] = values_copy(a, &before);
    if (!engine_run(&engines[i], p, &inputs, &after[i], &outputs[i], 1, &d)) return diags_text(&d, false);
    const char *wrong = expect_breach(a, &want, &before, &outputs[i], &after[i]);
    if (!wrong && want.exact_products) wrong = values_difference(a, &outputs[0], &outputs[i]);
    if (!wrong && want.exact_products) wrong = values_difference(a, &after[0], &after[i]);
    if (wrong)
      return arena_printf(a, "backend %s, %lld rows: %s", engines[i].backend->name, (long long)rows, wrong);
  }
  if (!has_alone) return NULL;
  struct values output = values_make(a), end = values_copy(a, &before);
  if (!engine_run(&alone, p, &inputs, &end, &output, 1, &d)) return diags_text(&d, false);
  const char *wrong = values_difference(a, &output, &outputs[nengines - 1]);
  if (!wrong) wrong = values_difference(a, &end, &after[nengines - 1]);
  return wrong ? arena_printf(a, "in pieces, %lld rows: %s", (long long)rows, wrong) : NULL;
}

static const char *fixed_shapes(struct arena *a, uint64_t seed, int size, const char **text) {
  return backends_on(a, &(struct model_options){.seed = seed, .size = size}, 1, text);
}

static const char *with_batch(struct arena *a, uint64_t seed, int size, const char **text) {
  static const int64_t rows[] = {1, 2, 5, 16, 17};
  struct model_options o = {.seed = seed, .size = size, .batch = true, .updates = true};
  return backends_on(a, &o, rows[seed % 5], text);
}

static const char *gradients(struct arena *a, uint64_t seed, int size, const char **text) {
  struct diags d;
  diags_init(&d, a);
  struct model m = random_model(a, &(struct model_options){.seed = seed, .size = size, .smooth = true}, &d);
  struct rng r = {seed};
  struct finite f = finite_add(m.g, &r, m.scalar, m.nvariables, m.variables);
  *text = graph_text(a, m.g);
  if (d.nerrors) return diags_text(&d, false);
  struct graph *expanded =
      pipeline_run(a, m.g, "grad", NULL, &(struct pipeline_options){.verify_each = true}, &d);
  if (!expanded) return diags_text(&d, false);
  struct values inputs, variables;
  model_values(a, m.g, 1, seed, true, &inputs, &variables);
  for (uint32_t i = 0; i < inputs.map.count; i++) {
    const struct tensor *t = inputs.map.entries[i].value;
    values_put(&variables, inputs.map.entries[i].key, &t->type, t->data);
  }
  struct tensor *values = arena_new_array(a, expanded->count, struct tensor);
  if (!graph_eval(a, expanded, &variables, &variables, values)) return "no oracle";
  return finite_breach(a, m.g, &f, expanded, values, &variables);
}

/* The smallest beginning of a model that fails. */
static void cut_down(try_fn *try, uint64_t seed, int size) {
  for (int n = 0; n <= size; n++) {
    struct arena *a = arena_create();
    const char *text = "", *wrong = try(a, seed, n, &text);
    if (wrong) {
      fprintf(stderr, "seed %llu, size %d: %s\n%s", (unsigned long long)seed, n, wrong, text);
      fail();
    }
    arena_destroy(a);
  }
}

static void run(try_fn *try, uint64_t first, int count, int size) {
  uint64_t seed = number_from("TEST_SEED", 0);
  count *= (int)number_from("TEST_GRAPHS", 1);
  exact = inside = unknown = 0;
  for (int i = 0; i < (seed ? 1 : count); i++) {
    struct arena *a = arena_create();
    uint64_t s = seed ? seed : first + (uint64_t)i;
    const char *text, *wrong = try(a, s, size, &text);
    if (wrong) cut_down(try, s, size);
    arena_destroy(a);
  }
}

/* Elements that must be equal, or at least bounded, must not die out. */
static void judge_strength(void) {
  print_message("%lld elements equal, %lld within bounds, %lld not bounded\n", (long long)exact,
                (long long)inside, (long long)unknown);
  assert_true(exact >= 2 * (inside + unknown));
}

static void random_fixed(void **state) {
  (void)state;
  run(fixed_shapes, 1000, 150, 40);
  judge_strength();
}

static void random_batch(void **state) {
  (void)state;
  run(with_batch, 2000, 150, 30);
  judge_strength();
}

static void random_gradients(void **state) {
  (void)state;
  run(gradients, 3000, 150, 12);
  print_message("%ld gradients\n", finite_compared());
}

static int open_all(void **state) {
  has_alone = backend_find("cpu") != NULL;
  return (has_alone && !engine_open(&alone, "cpu", 1)) || open_engines(state);
}

static int close_all(void **state) {
  if (has_alone) engine_close(&alone);
  return close_engines(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_fixed), cmocka_unit_test(random_batch),
                                     cmocka_unit_test(random_gradients)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}

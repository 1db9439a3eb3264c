/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of every op against finite differences, one test per op, driven from the op table: an op that has
 * no samples, or no gradient without saying so, fails here by name. Where differences do not exist: test_kinks. */
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/support/bound.h"
#include "tests/support/cases.h"
#include "tests/support/finite.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Multiples of 2^-12: so they and their neighbours are exact in f32 too. */
static void settle(struct tensor *t) {
  int64_t count = type_count(&t->type);
  for (int64_t i = 0; i < count; i++) tensor_set(t, i, rint(tensor_at(t, i) * 4096) / 4096);
}

static void fill(struct arena *a, struct rng *r, const struct op_case *c, struct values *variables) {
  case_fill(a, r, c, variables);
  for (int i = 0; i < c->nleaves; i++) settle(values_get(variables, c->leaves[i]->name));
}

static void gradient_of_op(void **state) {
  enum op_id op = (enum op_id)(uintptr_t)*state;
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_create(a, op_table[op]->name, &d);
  struct cases c = {.g = g, .op = op, .variables = true, .small = true};
  struct rng r = {op};
  cases_add(&c, DT_F64);
  if (op == OP_cast) cases_add(&c, DT_F32);
  struct values variables = values_make(a), none = values_make(a);
  struct finite *f = arena_new_array(a, (size_t)c.count, struct finite);
  int n = 0;
  for (int i = 0; i < c.count; i++) {
    fill(a, &r, &c.list[i], &variables);
    if (dtype_is_float(c.list[i].node->type.dtype))
      f[n++] = finite_add(g, &r, c.list[i].node, c.list[i].nleaves, c.list[i].leaves);
  }
  struct graph *expanded =
      pipeline_run(a, g, "grad", NULL, &(struct pipeline_options){.verify_each = true}, &d);
  if (!expanded) fail_msg("%s", diags_text(&d, false));
  struct tensor *values = arena_new_array(a, expanded->count, struct tensor);
  assert_true(graph_eval(a, expanded, &none, &variables, values));
  long before = finite_compared();
  for (int i = 0; i < n; i++) {
    const char *breach = finite_breach(a, g, &f[i], expanded, values, &variables);
    if (breach) fail_msg("%s\n%s", breach, graph_text(a, expanded));
  }
  if (finite_compared() - before < 10)
    fail_msg("%s: only %ld gradients", op_table[op]->name, finite_compared() - before);
  arena_destroy(a);
}

/* Of these, other tests compare gradients: what is rounded straight through with all differences, in test_narrow; a
 * loop and what it gives, of any body, with JAX's in tests/run/scan.py; what each tower has for itself, and what is
 * joined of it, with JAX's in tests/twins/towers.py. */
static bool is_elsewhere(enum op_id op) {
  return op_table[op]->narrow || op == OP_scan || op == OP_output || op == OP_aggregate || op == OP_local;
}

static void every_op_has_samples(void **state) {
  (void)state;
  int missing = 0;
  for (int i = 0; i < OP_COUNT; i++) {
    const struct op_info *op = op_table[i];
    if (op->domain == DOMAIN_MISSING)
      print_error("%s has no domain to draw samples from\n", op->name), missing++;
    if (!op->grad && !(op->traits & OP_NO_GRADIENT))
      print_error("%s has no gradient and does not say OP_NO_GRADIENT\n", op->name), missing++;
    if (op->grad && op->domain == DOMAIN_NONE && !is_elsewhere((enum op_id)i))
      print_error("%s has a gradient and no domain to draw samples from\n", op->name), missing++;
  }
  assert_int_equal(missing, 0);
}

/* The gradient of a product is the product of the others, also where elements are 0. */
static void products_with_zeros(void **state) {
  (void)state;
  static const double x[5][3] = {{2, -0.5, 3}, {0, 1.5, -2}, {0, 4, 0}, {0, 0, 0}, {1, 2, -0.0}};
  for (uint32_t axes = 1; axes < 4; axes++) {
    struct arena *a = arena_create();
    struct diags d;
    diags_init(&d, a);
    struct graph *g = graph_create(a, "products", &d);
    struct type t = {.dtype = DT_F64, .rank = 2, .dim = {5, 3}};
    struct node *leaf = build_variable(g, "x", &t, true, NULL);
    struct values none = values_make(a), variables = values_make(a);
    values_put(&variables, "x", &t, x);
    struct rng r = {axes};
    struct finite f = finite_add(g, &r, build_reduce(g, OP_reduce_prod, leaf, axes), 1, &leaf);
    struct graph *expanded =
        pipeline_run(a, g, "grad", NULL, &(struct pipeline_options){.verify_each = true}, &d);
    if (!expanded) fail_msg("%s", diags_text(&d, false));
    struct tensor *values = arena_new_array(a, expanded->count, struct tensor);
    assert_true(graph_eval(a, expanded, &none, &variables, values));
    const char *breach = finite_breach(a, g, &f, expanded, values, &variables);
    if (breach) fail_msg("axes %u: %s", axes, breach);
    arena_destroy(a);
  }
}

/* test_gradients [OP...]: of these alone, and what all of them must have. */
int main(int argc, char **argv) {
  struct CMUnitTest tests[OP_COUNT + 2] = {cmocka_unit_test(every_op_has_samples),
                                           cmocka_unit_test(products_with_zeros)};
  int n = 2;
  for (int i = 0; i < OP_COUNT; i++)
    if (op_table[i]->grad && !is_elsewhere((enum op_id)i) && op_is_named(argc, argv, (enum op_id)i))
      tests[n++] = (struct CMUnitTest){
          .name = op_table[i]->name, .test_func = gradient_of_op, .initial_state = (void *)(uintptr_t)i};
  if (n < argc + 1) return 2; /* there is no such op, or it has no gradient */
  return _cmocka_run_group_tests("gradients", tests, (size_t)n, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Ops without a domain of samples, each by name: sources, effects, and what passes insert. One that is missing
 * here fails by name. */
#include "ir/ops/op_id.h"
#include "tests/support/bound.h"
#include "tests/support/fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Placed graphs on two devices that run a few steps: what each backend and node_eval make of them. */
static const struct named {
  enum op_id op;
  const char *text;
  int steps;
  const char *want; /* outputs and variables: "y 1 2 ; v 3" */
} rows[] = {
    {OP_constant, " y = constant {value=[1, 2, 300]} : i32[3] mirrored on /cpu:0 # rule\n value y\n", 1,
     "y 1 2 300"},
    {OP_constant,
     " c = constant {value=[1.5, -2.5]} : f32[2] mirrored on /cpu:0 # rule\n y = neg c mirrored on /cpu:0 # "
     "rule\n value y\n value c\n",
     1, "y -1.5 2.5 ; c 1.5 -2.5"},
    {OP_input, " y = input : f64[3] mirrored on /cpu:1 # rule\n value y\n", 1, "y 1 2 3"},
    {OP_variable, " y = variable : i64[2] mirrored on /cpu:1 # rule\n value y\n", 1, "y 1 2"},
    /* a read sees the value from before the step, and an assignment gives the new one */
    {OP_assign,
     " v = variable : f64[2] mirrored on /cpu:0 # rule\n w = variable : f64[2] mirrored on /cpu:0 # rule\n"
     " two = add v, v mirrored on /cpu:0 # rule\n a = assign v, w mirrored on /cpu:0 # rule\n"
     " b = assign w, two mirrored on /cpu:0 # rule\n value old = v\n value a\n update ua = a\n update ub = "
     "b\n",
     2, "old 1 2 ; v 2 4 ; w 2 4 ; a 2 4"},
    {OP_split,
     " x = input : f64[3] mirrored on /cpu:0 # rule\n s = split x {offset=0} : f64[2] per_replica tower 0 on "
     "/cpu:0 # rule\n"
     " t = split x {offset=2} : f64[1] per_replica tower 1 on /cpu:0 # rule\n"
     " n = neg s per_replica tower 0 on /cpu:0 # rule\n q = square t per_replica tower 1 on /cpu:1 # rule\n"
     " y = all_gather n, q mirrored on /cpu:0 # rule\n value y\n",
     1, "y -1 -2 9"},
    {OP_all_gather,
     " x = input : f64[2] mirrored on /cpu:0 # rule\n s = split x {offset=0} : f64[2] per_replica tower 0 on "
     "/cpu:0 # rule\n"
     " t = split x {offset=2} : f64[0] per_replica tower 1 on /cpu:1 # rule\n"
     " y = all_gather s, t mirrored on /cpu:0 # rule\n value y\n",
     1, "y 1 2"},
#define SHARES(kind)                                                               \
  " x = input : f64[2,2] mirrored on /cpu:0 # rule\n"                              \
  " s = split x {offset=0} : f64[1,2] per_replica tower 0 on /cpu:0 # rule\n"      \
  " t = split x {offset=1} : f64[1,2] per_replica tower 1 on /cpu:0 # rule\n"      \
  " a = reduce_" kind " s {axes=[0]} partial(" kind ") tower 0 on /cpu:0 # rule\n" \
  " b = reduce_" kind " t {axes=[0]} partial(" kind ") tower 1 on /cpu:1 # rule\n"
    {OP_all_reduce,
     SHARES("sum") " y = all_reduce a, b {reduction=\"sum\"} mirrored on /cpu:0 # rule\n value y\n", 1,
     "y 4 6"},
    {OP_all_reduce,
     SHARES("sum") " y = all_reduce a, b {reduction=\"mean\"} mirrored on /cpu:0 # rule\n value y\n", 1,
     "y 2 3"},
    {OP_all_reduce,
     SHARES("max") " y = all_reduce a, b {reduction=\"max\"} mirrored on /cpu:0 # rule\n value y\n", 1,
     "y 3 4"},
    {OP_all_reduce,
     SHARES("min") " y = all_reduce a, b {reduction=\"min\"} mirrored on /cpu:0 # rule\n value y\n", 1,
     "y 1 2"},
    {OP_copy,
     " x = input : f64[3] mirrored on /cpu:0 # rule\n q = square x mirrored on /cpu:0 # rule\n"
     " c = copy q mirrored on /cpu:1 # rule\n d = copy q {alias=1} mirrored on /cpu:1 # rule\n"
     " y = neg c mirrored on /cpu:1 # rule\n z = add d, y mirrored on /cpu:1 # rule\n value y\n value z\n",
     1, "y -1 -4 -9 ; z 0 0 0"},
    /* From the last element to the first: t = 2 t + x, beginning with 1; what t was is stacked. */
    {OP_scan,
     " x = input : f64[3] mirrored on /cpu:0 # rule\n v = input : f64[] mirrored on /cpu:0 # rule\n"
     " y = scan v, x {reverse=1, carries=1, sequences=1, length=3} mirrored on /cpu:0 { # rule\n"
     "  t = input : f64[]\n  e = input : f64[]\n  two = constant {value=2.0} : f64[]\n  m = mul t, two\n"
     "  n = add m, e\n  value t = n\n  value before = t\n }\n"
     " z = output y {index=1} mirrored on /cpu:0 # rule\n value y\n value z\n",
     1, "y 25 ; z 12 5 1"},
    {OP_scan,
     " x = input : f64[2] mirrored on /cpu:0 # rule\n"
     " y = scan x {carries=1, sequences=0, length=0} mirrored on /cpu:0 { # rule\n"
     "  t = input : f64[2]\n  n = neg t\n  value t = n\n }\n value y\n",
     1, "y 1 2"},
};

/* Not run by themselves: gradient by test_gradients, fused and output by every graph that is fused, random
 * numbers, iota and the batch size by test_ops and test_graphs; of towers by test_variables; between tasks by
 * test_parts and test_processes. */
static const enum op_id elsewhere[] = {
    OP_gradient,      OP_newest,   OP_fused,       OP_output,    OP_iota,  OP_batch_size, OP_random_uniform,
    OP_random_normal, OP_tower_id, OP_tower_count, OP_aggregate, OP_local, OP_send,       OP_remote};

static void every_op_is_here(void **state) {
  (void)state;
  int missing = 0;
  for (int op = 0; op < OP_COUNT; op++) {
    bool found = op_table[op]->domain != DOMAIN_NONE;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) found |= rows[i].op == (enum op_id)op;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) found |= elsewhere[i] == (enum op_id)op;
    if (!found) print_error("%s has no samples and no test by name\n", op_table[op]->name), missing++;
  }
  assert_int_equal(missing, 0);
}

/* 1, 2, 3 ... in everything that is read. */
static void count_up(struct arena *a, const struct graph *g, struct values *inputs,
                     struct values *variables) {
  *inputs = values_make(a);
  *variables = values_make(a);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->op != OP_input && n->op != OP_variable) continue;
    struct tensor t = {n->type, arena_alloc(a, (size_t)type_bytes(&n->type))};
    int64_t count = type_count(&n->type);
    for (int64_t e = 0; e < count; e++) tensor_set(&t, e, (double)e + 1);
    values_put(n->op == OP_input ? inputs : variables, n->name, &t.type, t.data);
  }
}

static void check_numbers(const char *text, const struct values *outputs, const struct values *variables) {
  char name[64];
  int length;
  while (text += strspn(text, " ;"), sscanf(text, "%63s%n", name, &length) == 1) {
    text += length;
    const struct tensor *t = values_get(outputs, name);
    if (!t) t = values_get(variables, name);
    if (!t) fail_msg("%s is missing", name);
    int64_t count = type_count(&t->type);
    for (int64_t e = 0; e < count; e++) {
      char *end;
      double want = strtod(text, &end);
      assert_ptr_not_equal(end, text);
      text = end;
      if (tensor_at(t, e) != want) fail_msg("%s[%lld] is not as wanted", name, (long long)e);
    }
  }
}

static void check_row(const struct named *row) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  const char *text = arena_printf(
      a,
      "graph named {\n stage placed\n batch 3\n towers 2\n strategy mirrored\n devices /cpu:0 /cpu:1\n%s}\n",
      row->text);
  struct graph *g = graph_parse(a, source_make(a, "named", text, strlen(text)), &d);
  if (!g || !graph_verify(g, "parse", &d)) fail_msg("%s\n%s", text, diags_text(&d, false));
  struct values inputs, variables, outputs = values_make(a);
  count_up(a, g, &inputs, &variables);
  struct tensor *values = arena_new_array(a, g->count, struct tensor);
  for (int i = 0; i < row->steps; i++) assert_true(graph_eval(a, g, &inputs, &variables, values));
  for (int i = 0; i < g->noutputs; i++) {
    const struct tensor *t = &values[g->outputs[i].node->id];
    values_put(&outputs, g->outputs[i].name, &t->type, t->data);
  }
  check_numbers(row->want, &outputs, &variables);
  struct plan *p = engine_plan(a, g, &d);
  if (!p) fail_msg("%s", diags_text(&d, false));
  for (int e = 0; e < nengines; e++) {
    outputs = values_make(a);
    count_up(a, g, &inputs, &variables);
    if (!engine_run(&engines[e], p, &inputs, &variables, &outputs, row->steps, &d))
      fail_msg("%s", diags_text(&d, false));
    check_numbers(row->want, &outputs, &variables);
  }
  arena_destroy(a);
}

static void by_name(void **state) {
  enum op_id op = (enum op_id)(uintptr_t)*state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].op == op) check_row(&rows[i]);
}

int main(void) {
  struct CMUnitTest tests[OP_COUNT + 1] = {cmocka_unit_test(every_op_is_here)};
  int n = 1;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (i == 0 || rows[i].op != rows[i - 1].op)
      tests[n++] = (struct CMUnitTest){.name = op_table[rows[i].op]->name,
                                       .test_func = by_name,
                                       .initial_state = (void *)(uintptr_t)rows[i].op};
  return _cmocka_run_group_tests("named", tests, (size_t)n, open_engines, close_engines);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of every op on the cases of the op tests, and of every sample's loss, as ours and as JAX takes them of
 * the exported forward pass. In f64. Of an op's cases every fourth; TEST_CASES=1: all, and the large ones. */
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/oracle/sample.h"
#include "tests/support/cases.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <stdlib.h>

/* g with these outputs alone. */
static struct graph *with_outputs(struct arena *a, const struct graph *g) {
  struct graph *out = arena_copy(a, g, sizeof *g);
  out->outputs = NULL;
  out->noutputs = 0;
  return out;
}

/* `forward` has the loss, `backward` gradients by variables, as outputs named after these. */
static void write_both(const struct asked *q, struct arena *a, const char *name, struct graph *forward,
                       struct graph *backward, const struct values *inputs, const struct values *variables,
                       int64_t rows) {
  struct diags d;
  diags_init(&d, a);
  struct graph *whole = graph_wide(a, graph_concrete(a, graph_prune(a, forward), rows));
  struct graph *slopes =
      graph_wide(a, graph_concrete(a, backward, rows)); /* before: the numbers of slopes are f64 */
  if (!whole || !slopes) return;
  slopes->config = (struct config){0};
  slopes->diags = &d;
  slopes = pipeline_run(a, slopes, "simplify,grad", NULL, NULL, &d);
  if (!slopes) exit((fprintf(stderr, "%s: %s\n", name, d.first->message), 1));
  struct values wide_inputs = values_wide(a, inputs), wide_variables = values_wide(a, variables);
  case_write_gradients(q, name, whole, slopes, &wide_inputs, &wide_variables);
}

/* What the loss is made of, and the gradients by all variables. */
void write_gradients_of(const struct asked *q, const char *name, const struct graph *train,
                        const struct values *inputs, const struct values *variables, int64_t rows) {
  struct arena *a = arena_create();
  struct graph *forward = with_outputs(a, train), *backward = with_outputs(a, train);
  const struct node *loss = NULL;
  for (uint32_t i = 0; i < train->count; i++) {
    struct node *n = train->nodes[i];
    if (n->op != OP_gradient || (loss && n->inputs[0] != loss)) continue;
    if (!loss) graph_add_output(forward, OUTPUT_VALUE, "loss", n->inputs[0], 0);
    loss = n->inputs[0];
    graph_add_output(backward, OUTPUT_VALUE, n->inputs[1]->name, n, 0);
  }
  if (loss) write_both(q, a, name, forward, backward, inputs, variables, rows);
  arena_destroy(a);
}

/* ---- ops ---- */

static uint32_t all_axes(const struct node *n) { return (1u << n->type.rank) - 1; }

/* The sum of y's elements, each times a number of its own, which f32 holds, too: casts are folded. */
static struct node *weighted(struct graph *g, struct rng *r, struct node *y) {
  struct type t = type_with_dtype(y->type, DT_F64);
  int64_t count = type_count(&t);
  double *weights = arena_new_array(g->arena, (size_t)count + 1, double);
  for (int64_t i = 0; i < count; i++) weights[i] = (rng_below(r, 4096) - 2048 + 0.5) / 1024;
  struct node *product = build2(g, OP_mul, build_cast(g, y, DT_F64), build_constant(g, &t, weights));
  return build_reduce(g, OP_reduce_sum, product, all_axes(product));
}

/* Some operands only choose. */
static bool has_slope(enum op_id op, int operand) {
  if (op == OP_copysign) return operand == 0;
  return (op != OP_window_put && op != OP_window_pick) || operand == 1;
}

/* All cases as one loss. */
static void write_op(const struct asked *q, enum op_id op) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  bool all = number_from("TEST_CASES", 0) != 0;
  struct graph *g = graph_create(a, op_table[op]->name, &d);
  struct cases c = {.g = g, .op = op, .variables = true, .small = !all};
  struct values variables = values_make(a), none = values_make(a);
  struct rng r = {100 + op};
  struct node *loss = NULL;
  cases_add(&c, DT_F64);
  for (int i = 0; i < c.count; i++) {
    struct node *y = c.list[i].node;
    if (!dtype_is_float((enum dtype)y->type.dtype) || (!all && (i + i / 4) % 4)) continue;
    case_fill(a, &r, &c.list[i], &variables);
    struct node *more = weighted(g, &r, y);
    loss = loss ? build2(g, OP_add, loss, more) : more;
  }
  if (!loss) exit((fprintf(stderr, "%s: no gradients\n", op_table[op]->name), 1));
  struct graph *forward = with_outputs(a, g), *backward = with_outputs(a, g);
  graph_add_output(forward, OUTPUT_VALUE, "loss", loss, 0);
  for (int i = 0; i < c.count; i++)
    for (int k = 0; k < c.list[i].nleaves; k++) {
      struct node *x = c.list[i].leaves[k];
      if (values_get(&variables, x->name) && has_slope(op, k) && dtype_is_float((enum dtype)x->type.dtype))
        graph_add_output(backward, OUTPUT_VALUE, x->name, build_gradient(backward, loss, x), 0);
    }
  write_both(q, a, arena_printf(a, "op %s gradients", op_table[op]->name), forward, backward, &none,
             &variables, 1);
  arena_destroy(a);
}

void write_op_gradients(const struct asked *q) {
  for (enum op_id op = 0; op < OP_COUNT; op++) /* what rounds has not its slope: see docs/language.md */
    if (op_table[op]->grad && op_table[op]->domain != DOMAIN_NONE && !op_table[op]->narrow) write_op(q, op);
}

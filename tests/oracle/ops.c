/* SPDX-License-Identifier: Apache-2.0 */
/* Every op on the cases of the op tests: a graph for each element type, once on numbers of the op's own domain and once
 * on all that there are, zeros, infinities and NaN among them.
 *
 * XLA compiles a kernel for each case. So one case of four is taken, other ones for each element type, and none of the
 * large ones: TEST_CASES=1 takes all. */
#include "ir/ops/op_id.h"
#include "tests/oracle/case.h"
#include "tests/oracle/overflow.h"
#include "tests/support/cases.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether a case is one of those that an op has for a dtype. */
static bool taken(enum op_id op, enum dtype d, int number) {
  return number_from("TEST_CASES", 0) != 0 || (number + number / 4 + (int)op + (int)d) % 4 == 0;
}

static bool is_random(enum op_id op) { return op == OP_random_uniform || op == OP_random_normal; }

/* XLA's CPU takes subnormals for zeros; and what lies outside of a convolution's input is a zero there, which times
 * infinity is NaN: for us it is no term. Where a divisor is repeated, it multiplies by its reciprocal, which of the
 * largest numbers is subnormal. */
static void without_known_differences(enum op_id op, int operand, struct tensor *t) {
  double most = t->type.dtype == DT_F32 ? 0x1p126 : 0x1p1022;
  for (int64_t i = 0; i < type_count(&t->type) && dtype_is_float((enum dtype)t->type.dtype); i++) {
    double value = tensor_at(t, i), x = fabs(value);
    if (x < 0x1p-126 || (op == OP_conv && !isfinite(x))) tensor_set(t, i, 0);
    if (op == OP_div && operand == 1 && isfinite(x) && x > most) tensor_set(t, i, copysign(most, value));
  }
}

static struct values fill(struct arena *a, const struct cases *c, uint64_t seed, bool special) {
  struct rng r = {seed};
  struct values inputs = values_make(a);
  for (int i = 0; i < c->count; i++)
    for (int k = 0; k < c->list[i].nleaves; k++) {
      const struct node *leaf = c->list[i].leaves[k];
      struct tensor t = {leaf->type, arena_alloc(a, (size_t)type_bytes(&leaf->type))};
      if (special && !is_random(c->op))
        special_fill(&r, &t), without_known_differences(c->op, k, &t);
      else
        sample_fill(&r, op_table[c->op]->domain, k, &t);
      values_put(&inputs, leaf->name, &t.type, t.data);
    }
  return inputs;
}

/* What each node may give, in any order of additions; of what no output reads nothing is known. */
static struct bounds *bounds_of(struct arena *a, const struct graph *g, const struct values *inputs) {
  struct values none = values_make(a);
  struct bounds *at = arena_new_array(a, g->count, struct bounds);
  if (!graph_bounds(a, g, inputs, &none, 0, at)) exit(1);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->op == OP_cumsum && dtype_is_float((enum dtype)n->type.dtype) && at[i].value.data)
      overflow_widen(a, n, &at[n->inputs[0]->id].value, &at[i]);
  }
  return at;
}

static void write_op(const struct asked *q, enum op_id op, enum dtype d) {
  struct arena *a = arena_create();
  struct diags diags;
  diags_init(&diags, a);
  struct graph *g = graph_create(a, op_table[op]->name, &diags);
  struct cases c = {.g = g, .op = op, .small = number_from("TEST_CASES", 0) == 0};
  g->config.batch = 1;
  cases_add(&c, d);
  for (int i = 0; i < c.count; i++)
    if (taken(op, d, i)) graph_add_output(g, OUTPUT_VALUE, arena_printf(a, "case_%d", i), c.list[i].node, 0);
  struct values variables = values_make(a);
  for (int round = 0; round < 2 && c.count; round++) {
    const char *name =
        arena_printf(a, "op %s %s %s", op_table[op]->name, dtype_name(d), round ? "special" : "domain");
    if (!case_asked(q, name)) continue;
    struct values inputs = fill(a, &c, 100 * op + 10 * d + (unsigned)round, round);
    case_write(q, name, op_table[op]->name, g, &inputs, &variables,
               q->nodes ? NULL : bounds_of(a, g, &inputs));
  }
  arena_destroy(a);
}

/* "op conv f32 domain", or those of "op conv". */
static bool op_asked(const struct asked *q, const char *op) { return !q->only || strstr(q->only, op); }

void write_ops(const struct asked *q) {
  for (enum op_id op = 0; op < OP_COUNT; op++) {
    if (op_table[op]->domain == DOMAIN_NONE && op != OP_iota && !is_random(op)) continue;
    for (enum dtype d = DT_F32; d < DT_BF16 && op_asked(q, op_table[op]->name); d++) write_op(q, op, d);
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate of a train statement: what its optimizer is given as `rate`, as a small graph of `step` alone, so
 * that a training can say which rate it is at without a device. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <stdlib.h>
#include <string.h>

/* What is given to the parameter `rate`; of defaults, numbers alone. VALUE_NONE: the optimizer has none. */
static struct value rate_of(const struct function *f, const struct value *args) {
  int i = 0;
  for (const struct param *p = f->def->params.first; p; p = p->next, i++) {
    if (strcmp(p->name, "rate") != 0) continue;
    if (args[i].kind != VALUE_NONE || !p->value) return args[i];
    if (p->value->kind == EXPR_FLOAT) return (struct value){.kind = VALUE_FLOAT, .f = p->value->f};
    if (p->value->kind == EXPR_INT) return (struct value){.kind = VALUE_FLOAT, .f = (double)p->value->i};
  }
  return value_none();
}

static int by_id(const void *a, const void *b) {
  const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;
  return (x->id > y->id) - (x->id < y->id);
}

/* What n is made of, each behind its operands. NULL: of something besides constants and `step`. */
static const struct node **parts_of(struct resolver *r, const struct node *n, int *count) {
  const struct node **parts = NULL;
  uint32_t depth = 0;
  *count = 0;
  walk_begin(&r->walk, r->arena, r->g);
  walk_to(&r->walk, n, &depth);
  while (depth) {
    const struct node *q = r->walk.stack[--depth];
    bool step = q->op == OP_variable && strcmp(q->name, STEP_VARIABLE) == 0;
    if (!step && !q->ninputs && q->op != OP_constant && q->op != OP_iota) return NULL;
    if (q->own || reach_batch(&r->reach, r->g, q) || (op_of(q)->traits & OP_NO_CSE && !step)) return NULL;
    parts = arena_grown(r->arena, parts, *count, sizeof *parts);
    parts[(*count)++] = q;
    for (int i = 0; i < q->ninputs; i++) walk_to(&r->walk, q->inputs[i], &depth);
  }
  qsort(parts, (size_t)*count, sizeof *parts, by_id);
  return parts;
}

/* n once more in the graph of rates; NULL: it is no function of `step`. */
static struct node *copy_of(struct resolver *r, struct graph *g, const struct node *n) {
  int count;
  const struct node **parts = parts_of(r, n, &count);
  struct node **copies = parts ? arena_new_array(r->arena, (size_t)n->id + 1, struct node *) : NULL;
  struct node *copy = NULL;
  for (int i = 0; parts && i < count; i++) {
    const struct node *q = parts[i];
    struct node **in = arena_new_array(r->arena, (size_t)q->ninputs + 1, struct node *);
    for (int k = 0; k < q->ninputs; k++) in[k] = copies[q->inputs[k]->id];
    g->at.scope = q->name;
    if (q->op == OP_variable)
      copy = build_input(g, q->name, &q->type);
    else if (q->op == OP_constant)
      copy = build_constant(g, &q->type, node_attr(q, ATTR_value)->data);
    else
      copy = build_named(g, q->name, q->op, q->ninputs, in, q->nattrs, q->attrs, &q->type);
    if (!copy) return NULL;
    copies[q->id] = copy;
  }
  return copy;
}

void keep_rate(struct resolver *r, const struct function *f, const struct value *args, const char *loss) {
  struct value v = rate_of(f, args);
  bool tensor = v.kind == VALUE_TENSOR && v.tensor.graph == r->g && v.tensor.node->type.rank == 0;
  struct graph *g = r->rates;
  if (!g)
    g = r->rates = graph_create(r->arena, arena_printf(r->arena, "%s.rates", r->model->name), &r->built);
  g->at.scope = loss;
  struct node *n = NULL;
  if (v.kind == VALUE_INT || v.kind == VALUE_FLOAT)
    n = build_scalar(g, DT_F64, v.kind == VALUE_INT ? (double)v.i : v.f);
  else if (tensor && dtype_is_float((enum dtype)v.tensor.node->type.dtype))
    n = copy_of(r, g, v.tensor.node);
  if (n) graph_add_output(g, OUTPUT_VALUE, loss, n, 0);
}

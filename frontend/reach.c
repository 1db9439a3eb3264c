/* SPDX-License-Identifier: Apache-2.0 */
/* Which values are made of certain nodes, as of the rows of the batch.
 *
 * Operands come before what reads them and never change, so each node is looked at once in all, however many
 * statements ask. */
#include "frontend/reach.h"
#include "ir/ops/op_id.h"
#include "ir/ops/spread.h"

#include <string.h>

static bool has_batch(const struct node *n, const uint8_t *is) {
  bool yes = n->op == OP_input || n->op == OP_batch_size || type_is_symbolic(&n->type);
  for (int i = 0; i < n->ninputs; i++) yes |= is[n->inputs[i]->id];
  return yes;
}

static bool ask(struct reaches *r, struct reach *q, const struct graph *g, const struct node *n,
                bool (*has)(const struct node *n, const uint8_t *is)) {
  if (q->g != g) *q = (struct reach){.g = g};
  if (g->count > q->cap) {
    q->cap = 2 * g->count;
    uint8_t *more = arena_alloc(r->arena, q->cap);
    if (q->count) memcpy(more, q->is, q->count);
    q->is = more;
  }
  for (; q->count < g->count; q->count++) q->is[q->count] = has(g->nodes[q->count], q->is);
  return q->is[n->id];
}

/* Not of constants alone. */
static bool has_varying(const struct node *n, const uint8_t *is) {
  bool yes = n->ninputs == 0 && n->op != OP_constant && n->op != OP_iota;
  for (int i = 0; i < n->ninputs; i++) yes |= is[n->inputs[i]->id];
  return yes;
}

/* More than one row is known: what all give together, or where a row stands among the others. */
static bool has_total(const struct node *n, const uint8_t *is) {
  bool yes = n->op == OP_batch_size || node_spread(n, NULL) == SPREAD_NOT || type_has_whole(&n->type),
       rows = false;
  for (int i = 0; i < n->ninputs; i++) {
    yes |= is[n->inputs[i]->id];
    rows |= type_is_symbolic(&n->inputs[i]->type);
  }
  return yes || (rows && !type_is_symbolic(&n->type));
}

bool reach_batch(struct reaches *r, const struct graph *g, const struct node *n) {
  return ask(r, &r->batch, g, n, has_batch);
}

bool reach_varying(struct reaches *r, const struct graph *g, const struct node *n) {
  return ask(r, &r->varying, g, n, has_varying);
}

bool reach_total(struct reaches *r, const struct graph *g, const struct node *n) {
  return ask(r, &r->total, g, n, has_total);
}

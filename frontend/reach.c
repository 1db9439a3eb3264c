/* SPDX-License-Identifier: Apache-2.0 */
/* Which values are made of certain nodes, as of the rows of the batch.
 *
 * Operands come before what reads them and never change, so each node is looked at once in all, however many
 * statements ask. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"
#include "ir/ops/spread.h"

#include <string.h>

/* Grows by doubling. */
void *grown(struct arena *a, void *items, int count, size_t size) {
  if (count & (count - 1)) return items;
  void *more = arena_array(a, count ? 2 * (size_t)count : 1, size);
  if (count) memcpy(more, items, size * (size_t)count);
  return more;
}

static bool has_batch(const struct node *n, const uint8_t *is) {
  bool yes = n->op == OP_input || n->op == OP_batch_size || type_is_symbolic(&n->type);
  for (int i = 0; i < n->ninputs; i++) yes |= is[n->inputs[i]->id];
  return yes;
}

static bool ask(struct resolver *r, struct reach *q, const struct node *n,
                bool (*has)(const struct node *n, const uint8_t *is)) {
  const struct graph *g = r->g;
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

bool reach_batch(struct resolver *r, const struct node *n) { return ask(r, &r->batch, n, has_batch); }

bool reach_varying(struct resolver *r, const struct node *n) { return ask(r, &r->varying, n, has_varying); }

bool reach_total(struct resolver *r, const struct node *n) { return ask(r, &r->total, n, has_total); }

void walk_begin(struct resolver *r) {
  struct node_walk *w = &r->walk;
  w->number++;
  if (r->g->count <= w->cap) return;
  w->cap = 2 * r->g->count;
  w->met = arena_new_array(r->arena, w->cap, uint32_t);
  w->stack = arena_new_array(r->arena, w->cap, const struct node *);
}

void walk_to(struct node_walk *w, const struct node *n, uint32_t *depth) {
  if (w->met[n->id] == w->number) return;
  w->met[n->id] = w->number;
  w->stack[(*depth)++] = n;
}

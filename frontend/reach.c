/* Which values are made of certain nodes: of what differs from tower to tower, or of the rows of the batch.
 *
 * Operands come before what reads them and never change, so each node is looked at once in all, however many
 * statements ask. */
#include "frontend/resolve.h"

#include <string.h>

/* Grows by doubling. */
void *grown(struct arena *a, void *items, int count, size_t size) {
  if (count & (count - 1)) return items;
  void *more = arena_array(a, count ? 2 * (size_t)count : 1, size);
  if (count) memcpy(more, items, size * (size_t)count);
  return more;
}

static bool has_tower(const struct node *n, const uint8_t *is) {
  bool yes = n->op == OP_tower_id;
  for (int i = 0; n->op != OP_aggregate && i < n->ninputs; i++) yes |= is[n->inputs[i]->id];
  return yes;
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

bool reach_tower(struct resolver *r, const struct node *n) { return ask(r, &r->tower, n, has_tower); }

bool reach_batch(struct resolver *r, const struct node *n) { return ask(r, &r->batch, n, has_batch); }

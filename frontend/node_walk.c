/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through what a node is made of. */
#include "frontend/node_walk.h"

void walk_begin(struct node_walk *w, struct arena *a, const struct graph *g) {
  w->number++;
  if (g->count <= w->cap) return;
  w->cap = 2 * g->count;
  w->met = arena_new_array(a, w->cap, uint32_t);
  w->stack = arena_new_array(a, w->cap, const struct node *);
}

void walk_to(struct node_walk *w, const struct node *n, uint32_t *depth) {
  if (w->met[n->id] == w->number) return;
  w->met[n->id] = w->number;
  w->stack[(*depth)++] = n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Walks from one node through what it is made of, which cost what is met, not what the graph holds. */
#ifndef DGC_FRONTEND_NODE_WALK_H
#define DGC_FRONTEND_NODE_WALK_H

#include "ir/graph/graph.h"

/* Room for any number of walks, one after the other. A node was met in the walk whose number it has; `stack` has those
 * that are met and not yet looked at, `depth` of them. */
struct node_walk {
  uint32_t *met, number, cap;
  const struct node **stack;
};

void walk_begin(struct node_walk *w, struct arena *a, const struct graph *g);
void walk_to(struct node_walk *w, const struct node *n, uint32_t *depth);

#endif

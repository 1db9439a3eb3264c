/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of graphs, whole or without what nothing reads. */
#include "ir/graph/build.h"

#include <string.h>

/* The nodes that `keep` marks (NULL: all), and the outputs. */
static struct graph *copy_nodes(struct arena *a, const struct graph *from, const uint8_t *keep) {
  struct graph *g = graph_create_like(a, from);
  graph_reserve(g, from->count);
  struct node **copy = arena_new_array(a, from->count, struct node *);
  for (uint32_t i = 0; i < from->count; i++) {
    if (keep && !keep[i]) continue;
    struct node n = *from->nodes[i];
    n.inputs = arena_new_array(a, (size_t)n.ninputs, struct node *);
    for (int k = 0; k < n.ninputs; k++) n.inputs[k] = copy[from->nodes[i]->inputs[k]->id];
    copy[i] = graph_node(g, &n);
  }
  for (int i = 0; i < from->noutputs; i++) {
    const struct output *o = &from->outputs[i];
    graph_add_output(g, o->role, o->name, copy[o->node->id], o->count);
  }
  return g;
}

struct graph *graph_copy(struct arena *a, const struct graph *from) {
  return copy_nodes(a, from, NULL);
}

struct graph *graph_prune(struct arena *a, struct graph *from) {
  const uint8_t *live = graph_live(a, from);
  return memchr(live, 0, from->count) ? copy_nodes(a, from, live) : from;
}

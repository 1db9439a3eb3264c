/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of graphs, whole or without what nothing reads, and of nodes that are to be something else. */
#include "ir/graph/build.h"

#include <string.h>

struct node *graph_node_like(struct graph *g, const struct node *n, struct node **inputs) {
  struct node same = *n;
  same.inputs = inputs;
  return graph_node(g, &same);
}

struct node *build_again(struct graph *out, const struct node *n, struct node **in, void *user) {
  (void)user;
  return build_like(out, n, in, NULL);
}

bool graph_copy_nodes(struct arena *scratch, struct graph *out, const struct graph *from, const uint8_t *keep,
                      struct node **made, copy_visit *visit, void *user) {
  for (uint32_t i = 0; i < from->count; i++) {
    const struct node *n = from->nodes[i];
    if (made[i] || (keep && !keep[i])) continue;
    struct node **in = arena_new_array(scratch, (size_t)n->ninputs + 1, struct node *);
    for (int k = 0; k < n->ninputs; k++) in[k] = made[n->inputs[k]->id];
    made[i] = visit ? visit(out, n, in, user) : graph_node_like(out, n, in);
    if (!made[i]) return false;
  }
  return true;
}

void graph_copy_outputs(struct graph *out, const struct graph *from, struct node *const *made) {
  for (int i = 0; i < from->noutputs; i++) {
    const struct output *o = &from->outputs[i];
    graph_add_output(out, o->role, o->name, made[o->node->id], o->count);
  }
}

/* The nodes that `keep` marks (NULL: all), and the outputs. */
static struct graph *copy(struct arena *a, const struct graph *from, const uint8_t *keep) {
  struct graph *g = graph_create_like(a, from);
  struct node **made = arena_new_array(a, from->count + 1, struct node *);
  graph_reserve(g, from->count);
  graph_copy_nodes(a, g, from, keep, made, NULL, NULL);
  graph_copy_outputs(g, from, made);
  return g;
}

struct graph *graph_copy(struct arena *a, const struct graph *from) {
  return copy(a, from, NULL);
}

struct graph *graph_prune(struct arena *a, struct graph *from) {
  const uint8_t *live = graph_live(a, from);
  return memchr(live, 0, from->count) ? copy(a, from, live) : from;
}

/* Leaves behind what no output needs: a run of the model builds nodes that only another graph uses. */
#include "frontend/resolve.h"

struct graph *sweep(struct arena *a, struct graph *g, struct diags *d) {
  const uint8_t *live = graph_live(a, g);
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->count; i++) count += live[i] != 0;
  if (count == g->count) {
    g->diags = d;
    return g;
  }
  struct graph *out = graph_create_like(a, g);
  out->diags = d;
  struct node **copy = arena_new_array(a, g->count, struct node *);
  for (uint32_t i = 0; i < g->count; i++) {
    if (!live[i]) continue;
    struct node n = *g->nodes[i], **in = arena_new_array(a, (size_t)n.ninputs, struct node *);
    for (int k = 0; k < n.ninputs; k++) in[k] = copy[n.inputs[k]->id];
    n.inputs = in;
    copy[i] = graph_node(out, &n);
  }
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    graph_add_output(out, o->role, o->name, copy[o->node->id], o->count);
  }
  return out;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* N, the rows of the whole batch, as a number. */
#include "ir/graph/build.h"

bool graph_has_whole(const struct graph *g) {
  for (uint32_t i = 0; i < g->count; i++)
    if (type_has_whole(&g->nodes[i]->type)) return true;
  return false;
}

static struct type fixed(struct type t, int64_t rows) {
  for (int i = 0; i < t.rank; i++)
    if (dim_is_whole(t.dim[i]) && !dim_mul(t.dim[i] / DIM_WHOLE, rows, &t.dim[i]))
      t.dim[i] = MAX_ELEMENTS + 1;
  return t;
}

struct graph *graph_fix_whole(struct arena *a, struct graph *g, int64_t rows) {
  if (!graph_has_whole(g)) return g;
  struct graph *out = graph_create_like(a, g);
  uint8_t *live = graph_live(a, g);
  struct node **made = arena_new_array(a, g->count + 1, struct node *);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (!live[i]) continue;
    struct node **in = arena_new_array(a, (size_t)n->ninputs + 1, struct node *);
    for (int k = 0; k < n->ninputs; k++) in[k] = made[n->inputs[k]->id];
    struct type t = fixed(n->type, rows);
    made[i] = build_like(out, n, in, op_of(n)->traits & OP_TYPED ? &t : NULL);
    if (!made[i]) return NULL;
  }
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    graph_add_output(out, o->role, o->name, made[o->node->id], o->count);
  }
  return out;
}

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

static struct node *fix_node(struct graph *out, const struct node *n, struct node **in, void *rows) {
  struct type t = fixed(n->type, *(const int64_t *)rows);
  return build_like(out, n, in, op_of(n)->traits & OP_TYPED ? &t : NULL);
}

struct graph *graph_fix_whole(struct arena *a, struct graph *g, int64_t rows) {
  if (!graph_has_whole(g)) return g;
  struct graph *out = graph_create_like(a, g);
  struct node **made = arena_new_array(a, g->count + 1, struct node *);
  if (!graph_copy_nodes(a, out, g, graph_live(a, g), made, fix_node, &rows)) return NULL;
  graph_copy_outputs(out, g, made);
  return out;
}

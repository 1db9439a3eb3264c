/* Rows that towers add to one table (sparse gradients) are no sum over towers: they are gathered, in tower order,
 * wherever a copy of the table is, and added there by one scatter_add, so that no table crosses devices. */
#include "passes/replicate/towers.h"

#include "passes/replicate/clone.h"

/* The first `axes` axes of x as one. */
static struct node *flat_rows(struct replicate *r, const char *name, struct node *x, int axes) {
  struct type t = {.dtype = x->type.dtype, .rank = 1, .dim = {1}};
  for (int i = 0; i < axes; i++) t.dim[0] *= x->type.dim[i];
  for (int i = axes; i < x->type.rank; i++) t.dim[t.rank++] = x->type.dim[i];
  return build_named(r->to, name, OP_reshape, 1, &x, 0, NULL, &t);
}

struct node *gathered_rows(struct replicate *r, struct tower_group *g, const struct node *n, int input,
                           int device) {
  const struct node *x = n->inputs[input];
  int axes = n->inputs[1]->type.rank;
  struct node **towers = &r->towers[(size_t)x->id * (size_t)r->s.towers];
  if (r->single) return towers[0];
  struct node **have = &g->all_rows[(size_t)x->id * (size_t)r->ndevices + (size_t)device];
  if (*have) return *have;
  const char *name = arena_printf(r->to->arena, "%s.rows", x->name);
  if (x->op == OP_input && g->ntowers == r->s.towers) { /* all rows are there */
    place_context(r, x, DIST_MIRRORED, -1, device);
    struct node *global = mirrored_value(r, g, x, device);
    return *have = flat_rows(r, copy_name(r, g, n, name, device), global, axes);
  }
  struct node **all = arena_new_array(r->ctx->scratch, (size_t)g->ntowers, struct node *);
  for (int i = 0; i < g->ntowers; i++) {
    int tower = g->first_tower + i;
    place_context(r, x, DIST_PER_REPLICA, tower, -1);
    all[i] = flat_rows(r, tower_name(r, name, tower), towers[tower], axes);
    if (!all[i]) return NULL;
  }
  place_context(r, x, DIST_MIRRORED, -1, device);
  name = copy_name(r, g, n, arena_printf(r->to->arena, "gather_rows/%s", x->name), device);
  return *have = build_named(r->to, name, OP_all_gather, g->ntowers, all, 0, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that towers add to one table (sparse gradients) are no sum over towers: they are gathered, in tower order,
 * wherever a copy of the table is, and added there by one scatter_add, so that no table crosses devices. */
#include "ir/ops/op_id.h"
#include "passes/replicate/towers.h"

#include "passes/replicate/clone.h"

/* The first `axes` axes of x as one. */
static struct node *flat_rows(struct replicate *r, const char *name, struct node *x, int axes) {
  struct type t = {.dtype = x->type.dtype, .rank = 1, .dim = {1}};
  for (int i = 0; i < axes; i++) t.dim[0] *= x->type.dim[i];
  for (int i = axes; i < x->type.rank; i++) t.dim[t.rank++] = x->type.dim[i];
  return build_named(r->to, name, OP_reshape, 1, &x, 0, NULL, &t);
}

/* All rows of an input are there where its group has read them. */
static bool is_whole_input(const struct replicate *r, const struct tower_group *g, const struct node *x) {
  return x->op == OP_input && g->computes && g->ntowers == r->s.towers;
}

/* A tower's rows, or what comes of them to a device of another task. */
static struct node *rows_on(struct replicate *r, const struct node *n, const struct node *x, int tower,
                            int device) {
  int axes = n->inputs[1]->type.rank;
  const char *name = tower_name(r, arena_printf(r->to->arena, "%s.rows", x->name), tower);
  place_context(r, x, DIST_PER_REPLICA, tower, -1);
  if (has_tower(r, tower)) return flat_rows(r, name, r->towers[by_tower(r, x, tower)], axes);
  struct type t = type_specialize(&x->type, tower_rows(tower, r->s.towers, r->batch));
  struct type flat = {.dtype = t.dtype, .rank = 1, .dim = {1}};
  for (int i = 0; i < axes; i++) flat.dim[0] *= t.dim[i];
  for (int i = axes; i < t.rank; i++) flat.dim[flat.rank++] = t.dim[i];
  int64_t order[] = {x->id, tower};
  return task_graph_remote(r->to, arena_printf(r->to->arena, "%s.to_%d", name, device), &flat,
                           strategy_worker(&r->s, tower), device, order, 2);
}

struct node *gathered_rows(struct replicate *r, struct tower_group *g, const struct node *n, int input,
                           int device) {
  const struct node *x = n->inputs[input];
  int axes = n->inputs[1]->type.rank;
  struct node **towers = &r->towers[by_tower(r, x, 0)];
  if (r->single) return towers[0];
  struct node **have = &g->all_rows[by_device(r, x, device)];
  if (*have) return *have;
  const char *name = arena_printf(r->to->arena, "%s.rows", x->name);
  if (is_whole_input(r, g, x)) {
    place_context(r, x, DIST_MIRRORED, -1, device);
    struct node *global = mirrored_value(r, g, x, device);
    return *have = flat_rows(r, copy_name(r, g, n, name, device), global, axes);
  }
  struct node **all = arena_new_array(r->ctx->scratch, (size_t)g->ntowers, struct node *);
  for (int i = 0; i < g->ntowers; i++)
    if (!(all[i] = rows_on(r, n, x, g->first_tower + i, device))) return NULL;
  place_context(r, x, DIST_MIRRORED, -1, device);
  name = copy_name(r, g, n, arena_printf(r->to->arena, "gather_rows/%s", x->name), device);
  return *have = build_named(r->to, name, OP_all_gather, g->ntowers, all, 0, NULL, NULL);
}

bool send_rows(struct replicate *r, struct tower_group *g, const struct node *n, int device) {
  for (int k = 1; k < n->ninputs; k++) {
    const struct node *x = n->inputs[k];
    if (is_whole_input(r, g, x)) continue;
    for (int t = r->part.first_tower; t < r->part.first_tower + r->part.ntowers; t++) {
      int64_t order[] = {x->id, t};
      struct node *rows = rows_on(r, n, x, t, -1);
      if (!task_graph_send(r->to, rows, device, order, 2)) return false;
    }
  }
  return true;
}

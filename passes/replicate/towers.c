/* The clones of a node for the devices that need it and for the towers of a group, and the towers' shares of a sum made
 * one value. */
#include "passes/replicate/towers.h"

#include "passes/replicate/clone.h"
#include "passes/replicate/distribute.h"
#include "passes/replicate/needs.h"

#include <string.h>

bool clone_mirrored(struct replicate *r, struct tower_group *g, const struct node *n, struct node **in) {
  for (int d = 0; d < r->ndevices; d++) {
    if (!needed_on(r, g, n, d)) continue;
    for (int k = 0; k < n->ninputs; k++)
      in[k] = k > 0 && joins_rows(n) ? gathered_rows(r, g, n, k, d) : mirrored_value(r, g, n->inputs[k], d);
    place_context(r, n, DIST_MIRRORED, -1, d);
    struct clone_rows batch = {-1, g->rows, 0, g->rows};
    struct node *c = n->op == OP_aggregate ? aggregate_same(r, g, n, in[0])
                                           : clone(r, n, copy_name(r, g, n, n->name, d), in, batch);
    if (!c) return false;
    g->copies[(size_t)n->id * (size_t)r->ndevices + (size_t)d] = c;
  }
  return true;
}

bool clone_towers(struct replicate *r, struct tower_group *g, const struct node *n, struct node **in) {
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) {
    int64_t rows = tower_rows(t, r->s.towers, r->batch), first = tower_first_row(t, r->s.towers, r->batch);
    int device = strategy_worker(&r->s, t);
    for (int k = 0; k < n->ninputs; k++) {
      const struct node *x = n->inputs[k];
      bool per_tower =
          r->dist[x->id] == DIST_PER_REPLICA || (r->dist[x->id] == DIST_PARTIAL && passes_partial(r, n));
      in[k] = per_tower ? r->towers[(size_t)x->id * (size_t)r->s.towers + (size_t)t]
                        : mirrored_value(r, g, x, device);
    }
    enum dist dist = (enum dist)r->dist[n->id];
    if (dist == DIST_PARTIAL) dist = dist_partial(r->reduction[n->id]);
    if (r->single)
      place_context(r, n, DIST_MIRRORED, -1, device);
    else
      place_context(r, n, dist, t, -1);
    struct node *c = clone(r, n, tower_name(r, n->name, t), in, (struct clone_rows){t, rows, first, g->rows});
    if (dist == DIST_PER_REPLICA && type_batch_axis(&n->type) < 0) c = lift(r, n, c, t);
    if (!c) return false;
    r->towers[(size_t)n->id * (size_t)r->s.towers + (size_t)t] = c;
  }
  return true;
}

/* Where the towers' shares are summed: with the variable whose gradient it is, else where the sum is needed. */
static int sum_device(const struct replicate *r, const struct tower_group *g, const struct node *n) {
  size_t len = strlen(n->name);
  int home = -1;
  if (!r->s.mirrored && len > 5 && strcmp(n->name + len - 5, ".grad") == 0) {
    const struct node *v = map_getn(&r->from->names, n->name, len - 5);
    if (v && v->op == OP_variable) home = strategy_home(&r->s, v->name);
  }
  return home >= 0 && needed_on(r, g, n, home) ? home : primary_device(r, g, n);
}

bool reduce_towers(struct replicate *r, struct tower_group *g, const struct node *n) {
  int device = r->dist[n->id] == DIST_PARTIAL ? sum_device(r, g, n) : -1;
  if (device < 0) return true;
  if (is_aggregated(n) && !r->single) return join_local(r, g, n, device);
  struct node **all = &r->towers[(size_t)n->id * (size_t)r->s.towers + (size_t)g->first_tower];
  if (r->single) {
    g->sums[n->id] = all[0];
    return true;
  }
  struct attr how = attr_string(ATTR_reduction, r->reduction[n->id]);
  place_context(r, n, DIST_MIRRORED, -1, device);
  g->sums[n->id] = build_named(r->to, sum_name(r, g, n->name), OP_all_reduce, g->ntowers, all, 1, &how, NULL);
  return g->sums[n->id] != NULL;
}

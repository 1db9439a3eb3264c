/* The clones of a node for the devices that need it and for the towers of a group, and the towers' shares of a sum made
 * one value. */
#include "passes/replicate/towers.h"

#include "passes/replicate/clone.h"
#include "passes/replicate/distribute.h"
#include "passes/replicate/needs.h"

#include <string.h>

/* The part of one task: what the first device alone computes goes to all others, whose copies start from it. */
static bool send_fixed(struct replicate *r, const struct tower_group *g, const struct node *n) {
  if (!starts_from_primary(r, n)) return true;
  const struct node *x = n->inputs[1];
  int primary = primary_device(r, g, x);
  struct node *have = primary < 0 ? NULL : g->copies[(size_t)x->id * (size_t)r->ndevices + (size_t)primary];
  int64_t order = x->id;
  for (int p = 0; have && part_has(&r->part, primary) && p < r->part.count; p++) {
    int to = r->part.first[p];
    if (p == r->part.process || needed_on(r, g, x, to)) continue;
    if (!part_send(r->to, have, to, &order, 1)) return false;
  }
  return true;
}

bool clone_mirrored(struct replicate *r, struct tower_group *g, const struct node *n, struct node **in) {
  if (!part_is_whole(&r->part) && !send_fixed(r, g, n)) return false;
  for (int d = 0; d < r->ndevices; d++) {
    if (!needed_on(r, g, n, d)) continue;
    if (!part_has(&r->part, d)) {
      if (joins_rows(n) && !send_rows(r, g, n, d)) return false;
      continue;
    }
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
    if (!has_tower(r, t)) continue;
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

/* Whether all tasks read the sum, not the first alone. */
static bool is_for_all(const struct replicate *r, const struct tower_group *g, const struct node *n) {
  if (needed_on(r, g, n, r->part.first[r->part.count - 1])) return true;
  for (int i = 0; i < r->from->noutputs; i++) {
    const struct output *o = &r->from->outputs[i];
    if (o->node == n && o->role != OUTPUT_VALUE && o->role != OUTPUT_PREDICT) return true;
  }
  return false;
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
  bool part = !part_is_whole(&r->part); /* of all shares its own */
  int64_t order[] = {n->id, part && is_for_all(r, g, n)};
  struct attr how[2] = {attr_string(ATTR_reduction, r->reduction[n->id]), attr_ints(ATTR_order, 2, order)};
  int ntowers = part ? r->part.ntowers : g->ntowers;
  if (part) all = &r->towers[(size_t)n->id * (size_t)r->s.towers + (size_t)r->part.first_tower];
  place_context(r, n, DIST_MIRRORED, -1, device);
  g->sums[n->id] =
      build_named(r->to, sum_name(r, g, n->name), OP_all_reduce, ntowers, all, 1 + part, how, NULL);
  /* Its shares are given away even where nobody here reads the sum. */
  if (part && g->sums[n->id]) graph_add_output(r->to, OUTPUT_SEND, g->sums[n->id]->name, g->sums[n->id], 0);
  return g->sums[n->id] != NULL;
}

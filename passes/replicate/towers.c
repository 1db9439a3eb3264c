/* SPDX-License-Identifier: Apache-2.0 */
/* The clones of a node for the devices that need it and for the towers of a group, and the towers' shares of a sum made
 * one value. */
#include "passes/replicate/towers.h"

#include "ir/ops/op_id.h"
#include "passes/replicate/clone.h"
#include "passes/replicate/distribute.h"
#include "passes/replicate/needs.h"

#include <string.h>

/* The part of one task: what the first device alone computes goes to all others, whose copies start from it. */
static bool send_fixed(struct replicate *r, const struct tower_group *g, const struct node *n) {
  if (!starts_from_primary(r, n)) return true;
  const struct node *x = n->inputs[1];
  int primary = primary_device(r, g, x);
  struct node *have = primary < 0 ? NULL : g->copies[by_device(r, x, primary)];
  int64_t order = x->id;
  for (int p = 0; have && task_graph_has(&r->part, primary) && p < r->part.count; p++) {
    int to = r->part.first[p];
    if (p == r->part.process || needed_on(r, g, x, to)) continue;
    if (!task_graph_send(r->to, have, to, &order, 1)) return false;
  }
  return true;
}

/* The part of one task, where each variable has one copy: who holds it sends it to those that read it, and the others
 * know of it. */
static bool clone_variable(struct replicate *r, struct tower_group *g, const struct node *n) {
  int home = primary_device(r, g, n), own = r->part.process;
  if (!needed_on(r, g, n, home)) return true;
  const uint8_t *reads = readers_of(r, g, n);
  struct node **have = &g->copies[by_device(r, n, home)];
  int64_t order = n->id;
  place_context(r, n, DIST_MIRRORED, -1, home);
  struct node *v = clone(r, n, n->name, NULL, (struct clone_rows){-1, g->rows, 0, g->rows});
  if (!v) return false;
  if (task_graph_has(&r->part, home)) {
    *have = v;
    for (int p = 0; p < r->part.count; p++)
      if (p != own && reads[p] && !task_graph_send(r->to, v, r->part.first[p], &order, 1)) return false;
    return true;
  }
  graph_add_output(r->to, OUTPUT_HELD, v->name, v, 0);
  return !reads[own] || (*have = received(r, g, n, home)) != NULL;
}

bool clone_mirrored(struct replicate *r, struct tower_group *g, const struct node *n, struct node **in) {
  bool is_part = !task_graph_is_whole(&r->part), joins = joins_rows(n);
  if (is_part && n->op == OP_variable && !r->s.mirrored) return clone_variable(r, g, n);
  if (is_part && !send_fixed(r, g, n)) return false;
  for (int d = 0; d < r->ndevices; d++) {
    bool here = task_graph_has(&r->part, d);
    if ((!here && !joins) || !needed_on(r, g, n, d)) continue; /* of ten thousand devices few are here */
    if (!here) {
      if (!send_rows(r, g, n, d)) return false;
      continue;
    }
    for (int k = 0; k < n->ninputs; k++)
      in[k] = k > 0 && joins ? gathered_rows(r, g, n, k, d) : mirrored_value(r, g, n->inputs[k], d);
    place_context(r, n, DIST_MIRRORED, -1, d);
    struct clone_rows batch = {-1, g->rows, 0, g->rows};
    struct node *c = n->op == OP_aggregate ? aggregate_same(r, g, n, in[0])
                                           : clone(r, n, copy_name(r, g, n, n->name, d), in, batch);
    if (!c) return false;
    g->copies[by_device(r, n, d)] = c;
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
      in[k] = per_tower ? r->towers[by_tower(r, x, t)] : mirrored_value(r, g, x, device);
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
    r->towers[by_tower(r, n, t)] = c;
  }
  return true;
}

/* Where the towers' shares are summed: with the variable whose gradient it is, else where the sum is needed. */
static int sum_device(const struct replicate *r, const struct tower_group *g, const struct node *n) {
  const struct node *v = n->gradient_of && !r->s.mirrored ? graph_find(r->from, n->gradient_of) : NULL;
  int home = node_is(v, OP_variable) ? strategy_home(&r->s, v) : -1;
  return home >= 0 && needed_on(r, g, n, home) ? home : primary_device(r, g, n);
}

/* By process: whether it reads the sum. Losses and metrics are for all. */
static uint8_t *readers_of_sum(const struct replicate *r, const struct tower_group *g, const struct node *n) {
  uint8_t *reads = readers_of(r, g, n);
  for (int i = 0; i < r->from->noutputs; i++) {
    const struct output *o = &r->from->outputs[i];
    if (o->node == n && o->role != OUTPUT_VALUE && o->role != OUTPUT_PREDICT)
      memset(reads, 1, (size_t)r->part.count);
  }
  return reads;
}

/* In the part of one task: the number of a sum among those of all tasks, and who reads it, as ranges of processes. */
static struct attr order_of_sum(struct replicate *r, const struct node *n, const uint8_t *reads) {
  int64_t *order = arena_new_array(r->ctx->scratch, (size_t)r->part.count + 2, int64_t);
  int count = 0;
  order[count++] = n->id;
  for (int p = 0; p < r->part.count; p++) {
    if (reads[p] && (p == 0 || !reads[p - 1])) order[count++] = p;
    if (reads[p] && (p + 1 == r->part.count || !reads[p + 1])) order[count++] = p + 1;
  }
  return attr_ints(ATTR_order, count, order);
}

/* The part of a task without towers has no share of a sum. It knows of the first tower's, which says what is summed. */
static struct node *known_share(struct replicate *r, const struct tower_group *g, const struct node *n) {
  place_context(r, n, dist_partial(r->reduction[n->id]), 0, -1);
  return task_graph_remote(r->to, arena_printf(r->to->arena, "%s.share", sum_name(r, g, n)), &n->type,
                           strategy_worker(&r->s, 0), r->part.first[r->part.process], NULL, 0);
}

/* The same sum in the part of one task, which has shares of it, makes it on the device, or reads it. */
static bool reduce_part(struct replicate *r, struct tower_group *g, const struct node *n, int device) {
  const struct task_graph *p = &r->part;
  const uint8_t *reads = readers_of_sum(r, g, n);
  struct node **shares = &r->towers[by_tower(r, n, p->first_tower)], *known;
  if (!p->ntowers) {
    if (!task_graph_has(p, device) && !reads[p->process]) return true;
    shares = &known;
    if (!(known = known_share(r, g, n))) return false;
  }
  struct attr how[2] = {attr_string(ATTR_reduction, r->reduction[n->id]), order_of_sum(r, n, reads)};
  place_context(r, n, DIST_MIRRORED, -1, device);
  struct node *sum =
      build_named(r->to, sum_name(r, g, n), OP_all_reduce, p->ntowers ? p->ntowers : 1, shares, 2, how, NULL);
  /* Its shares are given away even where nobody here reads the sum. */
  if (sum) graph_add_output(r->to, OUTPUT_SEND, sum->name, sum, 0);
  return (g->sums[n->id] = sum) != NULL;
}

bool reduce_towers(struct replicate *r, struct tower_group *g, const struct node *n) {
  int device = r->dist[n->id] == DIST_PARTIAL ? sum_device(r, g, n) : -1;
  if (device < 0) return true;
  if (is_aggregated(n) && !r->single) return join_local(r, g, n, device);
  struct node **all = &r->towers[by_tower(r, n, g->first_tower)];
  if (r->single) {
    g->sums[n->id] = all[0];
    return true;
  }
  if (!task_graph_is_whole(&r->part)) return reduce_part(r, g, n, device);
  struct attr how = attr_string(ATTR_reduction, r->reduction[n->id]);
  place_context(r, n, DIST_MIRRORED, -1, device);
  g->sums[n->id] = build_named(r->to, sum_name(r, g, n), OP_all_reduce, g->ntowers, all, 1, &how, NULL);
  return g->sums[n->id] != NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Local values: the value that a node has for a tower which sees its own rows and no others.
 *
 * An aggregate joins such values: their sum, their mean, or the first tower's. Reductions that it is made of are those
 * of the tower's rows; rows are the model's, whatever statistics of the batch are in them, unless `local_rows` asks
 * otherwise. A variable that is joined on read has a copy on each tower, which its updates see and write; everybody
 * else reads all copies as one value. A tower without rows has no part in an aggregate and updates nothing, except for
 * what does not depend on anything. */
#include "ir/ops/op_id.h"
#include "passes/replicate/towers.h"

#include "passes/replicate/clone.h"
#include "passes/replicate/distribute.h"

#include <string.h>

static struct node **copies_of(const struct replicate *r, const struct node *n) {
  return &r->towers[by_tower(r, n, 0)];
}

/* Towers whose values count in an aggregate. */
static bool takes_part(const struct replicate *r, const struct tower_group *g, int tower) {
  return tower_rows(tower, r->s.towers, r->batch) > 0 || (g->rows == 0 && tower == g->first_tower);
}

static int takers(const struct replicate *r, const struct tower_group *g) {
  int n = 0;
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) n += takes_part(r, g, t);
  return n;
}

/* ---- clones ---- */

static struct node *local_value(struct replicate *r, const struct tower_group *g, const struct node *x,
                                int tower) {
  if (!has_local(r, x)) return mirrored_value(r, g, x, strategy_worker(&r->s, tower));
  struct node **of = is_on_read(x) || is_model_rows(r, x) ? r->towers : r->local;
  return of[by_tower(r, x, tower)];
}

/* The model's name where the model has no such value for all towers. */
static const char *local_name(struct replicate *r, const struct node *n, int tower) {
  const char *name = tower_name(r, n->name, tower);
  if (!graph_find(r->to, n->name) && !graph_find(r->to, name)) return name;
  return tower_name(r, arena_printf(r->to->arena, "local/%s", n->name), tower);
}

bool clone_local(struct replicate *r, struct tower_group *g, const struct node *n, struct node **in) {
  if (is_model_rows(r, n) || is_on_read(n)) return true;
  const char **names = arena_new_array(r->ctx->scratch, (size_t)r->s.towers, const char *);
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) names[t] = local_name(r, n, t);
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) {
    int64_t rows = tower_rows(t, r->s.towers, r->batch);
    struct clone_rows s = {t, rows, tower_first_row(t, r->s.towers, r->batch), rows};
    for (int k = 0; k < n->ninputs; k++) in[k] = local_value(r, g, n->inputs[k], t);
    place_context(r, n, DIST_PER_REPLICA, t, -1);
    struct node *c = clone(r, n, names[t], in, s);
    if (!(c = lift(r, n, c, t))) return false;
    r->local[by_tower(r, n, t)] = c;
  }
  return true;
}

bool clone_own(struct replicate *r, struct tower_group *g, const struct node *n) {
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) {
    place_context(r, n, DIST_PER_REPLICA, t, -1);
    if (!(copies_of(r, n)[t] = lift(r, n, local_value(r, g, n->inputs[0], t), t))) return false;
  }
  return true;
}

bool clone_copies(struct replicate *r, const struct node *n) {
  for (int t = 0; t < r->s.towers; t++) {
    if (copies_of(r, n)[t]) continue;
    place_context(r, n, DIST_PER_REPLICA, t, -1);
    struct attr attrs[ATTR_COUNT];
    int nattrs = n->nattrs;
    memcpy(attrs, n->attrs, sizeof *attrs * (size_t)nattrs);
    if (t > 0) attrs[nattrs++] = attr_string(ATTR_of, n->name);
    copies_of(r, n)[t] =
        build_named(r->to, tower_name(r, n->name, t), OP_variable, 0, NULL, nattrs, attrs, &n->type);
    if (!copies_of(r, n)[t]) return false;
  }
  return true;
}

/* A tower's value as its share of a sum. */
static struct node *share(struct replicate *r, const struct node *n, struct node *x, int tower) {
  return relabel(r, n, x, DIST_PARTIAL, tower, ".share");
}

static bool is_first(const char *how) { return strcmp(how, "only_first_replica") == 0; }

bool clone_shares(struct replicate *r, struct tower_group *g, const struct node *n) {
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) {
    struct node *x = joins_given(n) ? copies_of(r, n->inputs[0])[t] : local_value(r, g, n->inputs[0], t);
    if (x && !takes_part(r, g, t) && !is_first(r->reduction[n->id])) {
      place_context(r, n, DIST_PER_REPLICA, t, -1);
      r->to->at.scope = tower_name(r, n->name, t);
      x = build_fill(r->to, &n->type, 0);
    }
    if (x && !is_first(r->reduction[n->id])) x = share(r, n, x, t);
    if (!x) return false;
    copies_of(r, n)[t] = x;
  }
  return true;
}

bool clone_assigns(struct replicate *r, struct tower_group *g, const struct node *n) {
  const struct node *v = n->inputs[0], *value = n->inputs[1];
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) {
    struct node *in[2] = {copies_of(r, v)[t], local_value(r, g, value, t)};
    if (!takes_part(r, g, t) && !r->fixed[value->id]) continue;
    place_context(r, n, DIST_PER_REPLICA, t, -1);
    copies_of(r, n)[t] = build_named(r->to, tower_name(r, n->name, t), OP_assign, 2, in, 0, NULL, NULL);
    if (!copies_of(r, n)[t]) return false;
  }
  return true;
}

/* ---- joining ---- */

bool join_local(struct replicate *r, struct tower_group *g, const struct node *n, int device) {
  const char *how = r->reduction[n->id], *name = sum_name(r, g, n);
  bool copies = is_on_read(n);
  int first = copies ? 0 : g->first_tower, towers = copies ? r->s.towers : g->ntowers;
  struct node **of = &copies_of(r, n)[first], *sum;
  if (copies && !is_first(how)) {
    of = arena_new_array(r->ctx->scratch, (size_t)towers, struct node *);
    for (int t = 0; t < towers; t++)
      if (!(of[t] = share(r, n, copies_of(r, n)[t], t))) return false;
  }
  struct attr by = attr_string(ATTR_reduction, is_first(how) ? how : "sum");
  place_context(r, n, DIST_MIRRORED, -1, device);
  sum = build_named(r->to, name, OP_all_reduce, is_first(how) ? 1 : towers, of, 1, &by, NULL);
  if (sum && strcmp(how, "mean") == 0) {
    r->to->at.scope = arena_printf(r->to->arena, "%s.count", name);
    struct node *in[2] = {sum, build_fill(r->to, &n->type, copies ? towers : takers(r, g))};
    sum = build_named(r->to, arena_printf(r->to->arena, "%s.mean", name), OP_div, 2, in, 0, NULL, NULL);
  }
  return (g->sums[n->id] = sum) != NULL;
}

struct node *aggregate_same(struct replicate *r, const struct tower_group *g, const struct node *n,
                            struct node *x) {
  if (r->single || strcmp(node_string(n, ATTR_reduction), "sum") != 0 || !x) return x;
  r->to->at.scope = copy_name(r, g, n, n->name, r->to->at.replica);
  return build2(r->to, OP_mul, x, build_fill(r->to, &n->type, takers(r, g)));
}

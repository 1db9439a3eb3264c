/* The clones of a node: one per tower or per device, and their names.
 *
 * Tower 0 keeps the model's names; tower i > 0 has tower_i/<name>, a further copy of a mirrored value on device i
 * <name>/replica_i, what asynchronous worker i computes for its updates worker_i/<name>. */
#include "passes/replicate/replicate.h"

#include <string.h>

void place_context(struct replicate *r, const struct node *n, enum dist dist, int tower, int device) {
  build_at(r->to, n);
  r->to->dist = dist;
  r->to->tower = tower;
  r->to->replica = device;
}

const char *copy_name(struct replicate *r, const struct group *g, const struct node *n, const char *name,
                      int device) {
  bool variable = n->op == OP_variable;
  int primary = variable && r->s.mirrored ? r->s.main : primary_device(r, g, n);
  if (*g->prefix && !variable) name = arena_printf(r->to->arena, "%s%s", g->prefix, name);
  return device == primary ? name : arena_printf(r->to->arena, "%s/replica_%d", name, device);
}

const char *tower_name(struct replicate *r, const char *name, int tower) {
  return tower == 0 ? name : arena_printf(r->to->arena, "tower_%d/%s", tower, name);
}

/* Gradients are known by their variable: gradient_aggregating/h.kernel. */
const char *sum_name(struct replicate *r, const struct group *g, const char *name) {
  if (strncmp(name, "gradient_aggregating/", 21) == 0)
    return arena_printf(r->to->arena, "%s%s", g->prefix, name);
  size_t len = strlen(name);
  bool gradient = len > 5 && strcmp(name + len - 5, ".grad") == 0;
  return gradient ? arena_printf(r->to->arena, "%sgradient_aggregating/%.*s", g->prefix, (int)len - 5, name)
                  : arena_printf(r->to->arena, "%s%s.all_reduce", g->prefix, name);
}

struct node *version_of(const struct replicate *r, const struct node *variable, int version) {
  for (int k = version; k > 0; k--) {
    struct node *n = r->versions[(size_t)variable->id * (size_t)r->nversions + (size_t)k];
    if (n) return n;
  }
  int home = strategy_home(&r->s, variable->name);
  for (int i = 0; i < r->ngroups; i++) {
    struct node *n = r->groups[i].copies[(size_t)variable->id * (size_t)r->ndevices + (size_t)home];
    if (n) return n;
  }
  return NULL;
}

struct node *mirrored_value(struct replicate *r, const struct group *g, const struct node *x, int device) {
  if (x->op == OP_newest) return version_of(r, x->inputs[0], g->newest);
  if (r->dist[x->id] == DIST_PARTIAL) return g->sums[x->id];
  if (x->op == OP_variable && !r->s.mirrored) return version_of(r, x, g->reads);
  struct node **copies = &g->copies[(size_t)x->id * (size_t)r->ndevices];
  if (x->op == OP_input) return copies[r->s.consolidation];
  if (copies[device]) return copies[device];
  int primary = primary_device(r, g, x);
  return primary < 0 ? NULL : copies[primary];
}

struct node *clone(struct replicate *r, const struct node *n, const char *name, struct node **in,
                   struct slice s) {
  struct type t = type_specialize(&n->type, s.rows);
  r->to->scope = name;
  if (n->op == OP_tower_id) return build_fill(r->to, &t, s.tower > 0 ? s.tower : 0);
  if (n->op == OP_tower_count) return build_fill(r->to, &t, r->s.towers);
  if (type_is_symbolic(&n->type)) {
    struct rows rows = {s.first, s.rows, r->batch};
    return build_rows(r->to, name, n, in, r->single ? 1 : r->blocks.of[n->id], rows);
  }
  struct attr attrs[ATTR_COUNT];
  int nattrs = n->nattrs;
  memcpy(attrs, n->attrs, sizeof *attrs * (size_t)nattrs);
  if (n->op == OP_batch_size) attrs[nattrs++] = attr_int(ATTR_batch, s.counted);
  bool typed = op_of(n)->traits & OP_TYPED;
  return build_named(r->to, name, n->op, n->ninputs, in, nattrs, attrs, typed ? &t : NULL);
}

bool clone_mirrored(struct replicate *r, struct group *g, const struct node *n, struct node **in) {
  for (int d = 0; d < r->ndevices; d++) {
    if (!needed_on(r, g, n, d)) continue;
    for (int k = 0; k < n->ninputs; k++)
      in[k] = k > 0 && joins_rows(n) ? gathered_rows(r, g, n, k, d) : mirrored_value(r, g, n->inputs[k], d);
    place_context(r, n, DIST_MIRRORED, -1, d);
    struct slice whole = {-1, g->rows, 0, g->rows};
    struct node *c = n->op == OP_aggregate ? aggregate_same(r, g, n, in[0])
                                           : clone(r, n, copy_name(r, g, n, n->name, d), in, whole);
    if (!c) return false;
    g->copies[(size_t)n->id * (size_t)r->ndevices + (size_t)d] = c;
  }
  return true;
}

bool clone_towers(struct replicate *r, struct group *g, const struct node *n, struct node **in) {
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) {
    int64_t rows = tower_rows(t, r->s.towers, r->batch), first = tower_first_row(t, r->s.towers, r->batch);
    int device = strategy_worker(&r->s, t);
    for (int k = 0; k < n->ninputs; k++) {
      const struct node *x = n->inputs[k];
      bool own =
          r->dist[x->id] == DIST_PER_REPLICA || (r->dist[x->id] == DIST_PARTIAL && passes_partial(r, n));
      in[k] =
          own ? r->towers[(size_t)x->id * (size_t)r->s.towers + (size_t)t] : mirrored_value(r, g, x, device);
    }
    enum dist dist = (enum dist)r->dist[n->id];
    if (dist == DIST_PARTIAL) dist = dist_partial(r->reduction[n->id]);
    if (r->single)
      place_context(r, n, DIST_MIRRORED, -1, device);
    else
      place_context(r, n, dist, t, -1);
    struct node *c = clone(r, n, tower_name(r, n->name, t), in, (struct slice){t, rows, first, g->rows});
    if (dist == DIST_PER_REPLICA && type_batch_axis(&n->type) < 0) c = lift(r, n, c, t);
    if (!c) return false;
    r->towers[(size_t)n->id * (size_t)r->s.towers + (size_t)t] = c;
  }
  return true;
}

/* Where the towers' shares are summed: with the variable whose gradient it is, else where the sum is needed. */
static int sum_device(const struct replicate *r, const struct group *g, const struct node *n) {
  size_t len = strlen(n->name);
  int home = -1;
  if (!r->s.mirrored && len > 5 && strcmp(n->name + len - 5, ".grad") == 0) {
    const struct node *v = map_getn(&r->from->names, n->name, len - 5);
    if (v && v->op == OP_variable) home = strategy_home(&r->s, v->name);
  }
  return home >= 0 && needed_on(r, g, n, home) ? home : primary_device(r, g, n);
}

bool reduce_towers(struct replicate *r, struct group *g, const struct node *n) {
  int device = r->dist[n->id] == DIST_PARTIAL ? sum_device(r, g, n) : -1;
  if (device < 0) return true;
  if (joins_own(n) && !r->single) return join_own(r, g, n, device);
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

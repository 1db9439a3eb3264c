/* SPDX-License-Identifier: Apache-2.0 */
/* The clones of a node: one per tower or per device, and their names.
 *
 * Tower 0 keeps the model's names; tower i > 0 has tower_i/<name>, a further copy of a mirrored value on device i
 * <name>/replica_i, what asynchronous worker i computes for its updates worker_i/<name>. */
#include "passes/replicate/clone.h"

#include "ir/graph/text.h"
#include "ir/ops/op_id.h"
#include "passes/replicate/needs.h"

#include <string.h>

void place_context(struct replicate *r, const struct node *n, enum dist dist, int tower, int device) {
  build_at(r->to, n);
  r->to->at.dist = dist;
  r->to->at.tower = tower;
  r->to->at.replica = device;
}

const char *copy_name(struct replicate *r, const struct tower_group *g, const struct node *n,
                      const char *name, int device) {
  bool variable = n->op == OP_variable;
  int primary = variable && r->s.mirrored ? r->s.main : primary_device(r, g, n);
  if (*g->prefix && !variable) name = arena_printf(r->to->arena, "%s%s", g->prefix, name);
  return device == primary ? name : arena_printf(r->to->arena, "%s/replica_%d", name, device);
}

const char *tower_name(struct replicate *r, const char *name, int tower) {
  return tower == 0 ? name : arena_printf(r->to->arena, "tower_%d/%s", tower, name);
}

/* Gradients are known by their variable: gradient_aggregating/h.kernel. */
const char *sum_name(struct replicate *r, const struct tower_group *g, const struct node *n) {
  return n->gradient_of ? arena_printf(r->to->arena, "%s" TEXT_GRADIENT_SUM "%s", g->prefix, n->gradient_of)
                        : arena_printf(r->to->arena, "%s%s.all_reduce", g->prefix, n->name);
}

struct node *version_of(const struct replicate *r, const struct node *variable, int version) {
  for (int k = version; k > 0; k--) {
    struct node *n = r->versions[(size_t)variable->id * (size_t)r->nversions + (size_t)k];
    if (n) return n;
  }
  int home = strategy_home(&r->s, variable);
  for (int i = 0; i < r->ngroups; i++) {
    struct node *n = r->groups[i].copies[by_device(r, variable, home)];
    if (n) return n;
  }
  return NULL;
}

struct node *received(struct replicate *r, const struct tower_group *g, const struct node *x, int device) {
  struct type t = type_specialize(&x->type, g->rows);
  int64_t order = x->id;
  place_context(r, x, DIST_MIRRORED, -1, device);
  const char *name = arena_printf(r->to->arena, "%s.of_%d", copy_name(r, g, x, x->name, device), device);
  return task_graph_remote(r->to, name, &t, device, r->part.first[r->part.process], &order, 1);
}

struct node *mirrored_value(struct replicate *r, const struct tower_group *g, const struct node *x,
                            int device) {
  if (x->op == OP_newest) return version_of(r, x->inputs[0], g->newest);
  if (r->dist[x->id] == DIST_PARTIAL) return g->sums[x->id];
  if (x->op == OP_variable && !r->s.mirrored) return version_of(r, x, g->reads);
  struct node **copies = &g->copies[(size_t)x->id * (size_t)r->ndevices];
  if (x->op == OP_input) return copies[r->s.inputs];
  if (copies[device]) return copies[device];
  int primary = primary_device(r, g, x);
  if (primary >= 0 && !copies[primary] && !task_graph_has(&r->part, primary))
    copies[primary] = received(r, g, x, primary);
  return primary < 0 ? NULL : copies[primary];
}

struct node *clone(struct replicate *r, const struct node *n, const char *name, struct node **in,
                   struct clone_rows s) {
  struct type t = type_specialize(&n->type, s.rows);
  r->to->at.scope = name;
  if (n->op == OP_tower_id)
    return build_tower_number(r->to, &t, s.tower > 0 ? s.tower : 0,
                              target_shares_program(&r->to->config.target));
  if (n->op == OP_local) return in[0]; /* of the only tower */
  if (n->op == OP_tower_count) return build_fill(r->to, &t, r->s.towers);
  if (type_is_symbolic(&n->type) || n->op == OP_scan) {
    struct rows rows = {s.first, s.rows, r->batch};
    return build_rows(r->to, name, n, in, r->single ? 1 : r->blocks.of[n->id], rows);
  }
  struct attr attrs[ATTR_COUNT];
  int nattrs = n->nattrs;
  memcpy(attrs, n->attrs, sizeof *attrs * (size_t)nattrs);
  if (n->op == OP_variable && strcmp(name, n->name) != 0 && !node_attr(n, ATTR_of))
    attrs[nattrs++] = attr_string(ATTR_of, n->name);
  if (n->op == OP_batch_size) attrs[nattrs++] = attr_int(ATTR_batch, s.counted);
  bool typed = op_of(n)->traits & OP_TYPED;
  return build_named(r->to, name, n->op, n->ninputs, in, nattrs, attrs, typed ? &t : NULL);
}

struct node *relabel(struct replicate *r, const struct node *n, struct node *x, enum dist dist, int tower,
                     const char *suffix) {
  struct node proto = {.op = OP_identity,
                       .type = x->type,
                       .dist = dist,
                       .ninputs = 1,
                       .inputs = &x,
                       .name = tower_name(r, arena_printf(r->to->arena, "%s%s", n->name, suffix), tower),
                       .loc = n->loc,
                       .trail = n->trail,
                       .origin = n->origin,
                       .backward = n->backward,
                       .want = n->want,
                       .tower = tower,
                       .replica = -1,
                       .device = -1};
  return graph_node(r->to, &proto);
}

struct node *lift(struct replicate *r, const struct node *n, struct node *x, int tower) {
  if (!x || r->single || x->dist != DIST_MIRRORED) return x;
  return relabel(r, n, x, DIST_PER_REPLICA, tower, ".local");
}

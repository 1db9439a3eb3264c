/* SPDX-License-Identifier: Apache-2.0 */
/* replicate: fixes the batch and clones the model into towers.
 *
 * Every value gets a distribution. What depends on the batch exists once per tower, on a slice of its batch
 * axis (per_replica), or as one tower's share of a sum over the batch (partial); everything else is the same
 * everywhere (mirrored) and exists once per device that needs it. A partial value passes through additions and
 * movement and is summed over the towers, by one all_reduce, before anything else reads it: so a mean over the
 * batch is one sum divided once by the true count, a batch statistic in the forward pass is an all_reduce like
 * any other, and a gradient is reduced once, however often its variable was used. Rows for a table are gathered. An
 * update is computed where its variable is.
 *
 * In asynchronous training each worker is a group of its own: it sums and applies the gradients of its towers,
 * counting their rows only, and leaves the next version of each variable it assigns. The workers follow each other in
 * order; worker i computes with version i - staleness and applies to the newest. One assignment stores the last.
 *
 * With one tower nothing is split, reduced or renamed.
 *
 * Requires: stage source without gradients; config.batch. Guarantees: stage replicated, all shapes concrete,
 * law 2. */
#include "ir/ops/op_id.h"
#include "passes/replicate/clone.h"
#include "passes/replicate/distribute.h"
#include "passes/replicate/needs.h"
#include "passes/replicate/towers.h"

#include <string.h>

/* The whole batch arrives on the consolidation device; each tower reads its rows. */
static bool clone_input(struct replicate *r, struct tower_group *g, const struct node *n) {
  struct type global = type_specialize(&n->type, r->batch);
  place_context(r, n, DIST_MIRRORED, -1, r->s.inputs);
  struct node *x = build_input(r->to, n->name, &global);
  g->copies[by_device(r, n, r->s.inputs)] = x;
  if (!x || r->dist[n->id] != DIST_PER_REPLICA) return x != NULL;
  struct node **towers = &r->towers[by_tower(r, n, 0)];
  int64_t each = -n->type.dim[0];
  const char *name = arena_printf(r->to->arena, "split_inputs/%s", n->name);
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) {
    if (!has_tower(r, t)) continue;
    struct attr first = attr_int(ATTR_offset, each * tower_first_row(t, r->s.towers, r->batch));
    struct type slice = type_specialize(&n->type, tower_rows(t, r->s.towers, r->batch));
    place_context(r, n, DIST_PER_REPLICA, t, -1);
    towers[t] =
        r->single ? x : build_named(r->to, tower_name(r, name, t), OP_split, 1, &x, 1, &first, &slice);
    if (!towers[t]) return false;
  }
  return true;
}

/* ---- groups ---- */

static struct tower_group new_group(struct replicate *r, int first_tower, int ntowers) {
  struct arena *a = r->ctx->scratch;
  size_t nodes = (size_t)r->from->count + 1;
  struct tower_group g = {.prefix = "", .first_tower = first_tower, .ntowers = ntowers};
  g.workers = arena_new_array(a, (size_t)r->words, uint64_t);
  g.wanted = arena_new_array(a, nodes, uint8_t);
  g.wants_local = arena_new_array(a, nodes, uint8_t);
  g.need = arena_array(a, nodes * (size_t)r->words, sizeof *g.need);
  g.copies = arena_array(a, nodes * (size_t)r->ndevices, sizeof *g.copies);
  g.sums = arena_new_array(a, nodes, struct node *);
  g.all_rows = arena_array(a, nodes * (size_t)r->ndevices, sizeof *g.all_rows);
  for (int t = first_tower; t < first_tower + ntowers; t++) {
    set_add(g.workers, strategy_worker(&r->s, t));
    g.rows += tower_rows(t, r->s.towers, r->batch);
  }
  return g;
}

/* The towers of each worker, for a graph whose updates tell versions apart. */
static int find_workers(const struct replicate *r, int *first) {
  if (!r->to->config.asynchronous || !graph_has_op(r->from, OP_newest)) return 1;
  return strategy_tasks(&r->s, &r->to->config.target, first);
}

static void make_groups(struct replicate *r) {
  struct arena *a = r->ctx->scratch;
  int *first = arena_new_array(a, (size_t)r->s.towers + 1, int);
  int workers = find_workers(r, first);
  first[workers] = r->s.towers;
  r->groups = arena_new_array(a, (size_t)workers + 1, struct tower_group);
  r->nversions = workers + 1;
  r->versions = arena_array(a, ((size_t)r->from->count + 1) * (size_t)r->nversions, sizeof *r->versions);
  for (int i = 0; i < workers; i++) {
    struct tower_group *g = &r->groups[r->ngroups++];
    *g = new_group(r, first[i], first[i + 1] - first[i]);
    g->computes = true;
    g->updates = g->rows > 0 || workers == 1; /* a worker without rows has nothing to apply */
    g->outputs = workers == 1;
    if (workers == 1) continue;
    g->prefix = arena_printf(r->to->arena, "worker_%d/", i);
    g->newest = i;
    g->reads = i > r->to->config.staleness ? i - r->to->config.staleness : 0;
  }
  if (workers == 1) return;
  struct tower_group *all = &r->groups[r->ngroups++];
  *all = new_group(r, 0, r->s.towers);
  all->outputs = true;
}

/* Aggregates, copies of variables that are joined on read, and what is assigned to those. */
static bool clone_aggregated(struct replicate *r, struct tower_group *g, const struct node *n) {
  bool here = g->computes && g->wanted[n->id];
  if (n->op == OP_assign) return !here || clone_assigns(r, g, n);
  if (n->op == OP_aggregate) return (!here || clone_shares(r, g, n)) && reduce_towers(r, g, n);
  bool read = here || g->wants_local[n->id] || primary_device(r, g, n) >= 0;
  return !read || (clone_copies(r, n) && reduce_towers(r, g, n));
}

static bool clone_node(struct replicate *r, struct tower_group *g, const struct node *n, struct node **in) {
  if (n->op == OP_newest) return true;
  if (!r->single && on_towers(r, n) && (is_aggregated(n) || n->op == OP_assign))
    return clone_aggregated(r, g, n);
  if (!r->single && n->op == OP_local) return !g->computes || !g->wanted[n->id] || clone_own(r, g, n);
  if (n->op == OP_assign && *g->prefix) { /* the next version, in place of an assignment */
    int home = strategy_home(&r->s, n->inputs[0]);
    if (!needed_on(r, g, n, home)) return true;
    struct node *value = mirrored_value(r, g, n->inputs[1], home);
    const char *name = arena_printf(r->to->arena, "%s/version_%d", n->inputs[0]->name, g->newest + 1);
    if (value && value->op != OP_variable) graph_rename(r->to, value, name);
    r->versions[(size_t)n->inputs[0]->id * (size_t)r->nversions + (size_t)g->newest + 1] = value;
    return value != NULL;
  }
  if (n->op == OP_variable && !r->s.mirrored && version_of(r, n, 0)) return true; /* made for another group */
  if (n->op == OP_input) return (on_towers(r, n) && !g->computes) || clone_input(r, g, n);
  if (!on_towers(r, n)) return clone_mirrored(r, g, n, in);
  return (!g->computes || !g->wanted[n->id] || clone_towers(r, g, n, in)) && reduce_towers(r, g, n);
}

static bool clone_group(struct replicate *r, struct tower_group *g) {
  for (uint32_t i = 0; i < r->from->count; i++) {
    const struct node *n = r->from->nodes[i];
    struct node **in = arena_new_array(r->ctx->scratch, (size_t)n->ninputs + 1, struct node *);
    if (n->op == OP_input && !g->wanted[i] && primary_device(r, g, n) < 0) continue;
    if (!clone_node(r, g, n, in)) return false;
    if (g->computes && g->wants_local[i] && !clone_local(r, g, n, in)) return false;
  }
  return true;
}

/* ---- results ---- */

/* The last version of each variable is what the step leaves. */
static bool assign_last(struct replicate *r, const struct output *o) {
  const struct node *assign = o->node;
  int home = strategy_home(&r->s, assign->inputs[0]);
  struct node *in[2] = {version_of(r, assign->inputs[0], 0),
                        version_of(r, assign->inputs[0], r->nversions - 1)};
  if (!in[0] || !in[1] || in[0] == in[1]) return in[1] != NULL;
  place_context(r, assign, DIST_MIRRORED, -1, home);
  struct node *n = build_named(r->to, assign->name, OP_assign, 2, in, 0, NULL, NULL);
  if (n) graph_add_output(r->to, o->role, o->name, n, 0);
  return n != NULL;
}

static bool add_update(struct replicate *r, const struct output *o) {
  for (int t = 0; on_towers(r, o->node) && t < r->s.towers; t++) {
    struct node *n = r->towers[by_tower(r, o->node, t)];
    if (n) graph_add_output(r->to, o->role, tower_name(r, o->name, t), n, 0);
  }
  if (on_towers(r, o->node)) return true;
  if (r->ngroups > 1) return assign_last(r, o);
  struct tower_group *g = &r->groups[0];
  for (int d = 0; d < r->ndevices; d++) {
    struct node *n = g->copies[by_device(r, o->node, d)];
    if (n) graph_add_output(r->to, o->role, copy_name(r, g, o->node, o->name, d), n, 0);
  }
  return true;
}

/* A tower's rows of a result, the first axis the batch. */
static struct node *result_rows(struct replicate *r, const struct output *o, const char *name, int tower) {
  const struct node *x = o->node;
  const char *of_tower = tower_name(r, arena_printf(r->to->arena, "%s.rows", name), tower);
  place_context(r, x, DIST_PER_REPLICA, tower, -1);
  r->to->at.scope = of_tower;
  return rows_first(r->to, of_tower, x, r->blocks.of[x->id], r->towers[by_tower(r, x, tower)],
                    tower_rows(tower, r->s.towers, r->batch));
}

/* Results come behind everything else. */
static int64_t result_order(const struct replicate *r, const struct output *o) {
  return (int64_t)r->from->count + (o - r->from->outputs);
}

/* In the part of a task that has not all rows: it sends its own, and knows of the result. */
static struct node *send_result(struct replicate *r, const struct output *o, const char *name) {
  for (int t = r->part.first_tower; t < r->part.first_tower + r->part.ntowers; t++) {
    int64_t order[] = {result_order(r, o), t};
    if (!task_graph_send(r->to, result_rows(r, o, name, t), r->s.consolidation, order, 2)) return NULL;
  }
  struct type all = type_specialize(&o->node->type, r->batch);
  place_context(r, o->node, DIST_MIRRORED, -1, r->s.consolidation);
  return task_graph_remote(r->to, name, &all, r->s.consolidation, r->s.inputs, NULL, 0);
}

/* The rows of a tower of another task: as those of an own one, but for their number. */
static struct node *rows_from(struct replicate *r, const struct output *o, const char *name, int tower,
                              const struct node *own) {
  int64_t rows = tower_rows(tower, r->s.towers, r->batch),
          have = tower_rows(own->tower, r->s.towers, r->batch);
  struct type t = own->type;
  t.dim[0] = have ? t.dim[0] / have * rows : 0;
  int64_t order[] = {result_order(r, o), tower};
  place_context(r, o->node, DIST_PER_REPLICA, tower, -1);
  return task_graph_remote(r->to, tower_name(r, arena_printf(r->to->arena, "%s.rows", name), tower), &t,
                           strategy_worker(&r->s, tower), r->s.consolidation, order, 2);
}

/* The towers' rows one behind the other, where the model has them. */
static struct node *gather_result(struct replicate *r, const struct output *o) {
  const struct node *x = o->node;
  if (!type_is_symbolic(&x->type)) {
    refuse(r, x, "it differs from tower to tower, and a result is one");
    return NULL;
  }
  const char *name = arena_printf(r->to->arena, "gather_outputs/%s", o->name);
  if (!task_graph_has(&r->part, r->s.consolidation)) return send_result(r, o, name);
  struct node **rows = arena_new_array(r->ctx->scratch, (size_t)r->s.towers, struct node *);
  for (int t = 0; t < r->s.towers; t++) {
    rows[t] = has_tower(r, t) ? result_rows(r, o, name, t) : rows_from(r, o, name, t, rows[0]);
    if (!rows[t]) return NULL;
  }
  place_context(r, x, DIST_MIRRORED, -1, r->s.consolidation);
  struct node *all = build_named(r->to, name, OP_all_gather, r->s.towers, rows, 0, NULL, NULL);
  r->to->at.scope = arena_printf(r->to->arena, "%s.back", name);
  return all ? rows_back(r->to, r->to->at.scope, x, r->blocks.of[x->id], all, r->batch) : NULL;
}

/* In the part of one task: a result that the first device has. Losses and metrics are for all tasks. */
static struct node *share_result(struct replicate *r, struct tower_group *g, const struct output *o) {
  const struct node *x = o->node;
  int own = r->part.first[r->part.process];
  int64_t order = result_order(r, o);
  bool all = o->role != OUTPUT_VALUE && o->role != OUTPUT_PREDICT;
  if (r->dist[x->id] == DIST_PARTIAL || needed_on(r, g, x, own)) {
    struct node *n = mirrored_value(r, g, x, own);
    if (n && !task_graph_has(&r->part, r->s.main)) return n;
  }
  if (!task_graph_has(&r->part, r->s.main)) {
    struct type t = type_specialize(&x->type, g->rows);
    place_context(r, x, DIST_MIRRORED, -1, r->s.main);
    return task_graph_remote(r->to, x->name, &t, r->s.main, own, &order, all);
  }
  struct node *n = mirrored_value(r, g, x, r->s.main);
  bool shared = n && all && r->dist[x->id] != DIST_PARTIAL;
  for (int p = 0; shared && p < r->part.count; p++) {
    int to = r->part.first[p];
    if (p == r->part.process || needed_on(r, g, x, to)) continue;
    if (!task_graph_send(r->to, n, to, &order, 1)) return NULL;
  }
  return n;
}

static bool add_output(struct replicate *r, const struct output *o) {
  if (o->role == OUTPUT_UPDATE) return add_update(r, o);
  struct tower_group *g = &r->groups[r->ngroups - 1];
  struct node *n;
  if (r->single && on_towers(r, o->node))
    n = r->towers[o->node->id];
  else if (r->dist[o->node->id] == DIST_PER_REPLICA)
    n = gather_result(r, o);
  else if (!task_graph_is_whole(&r->part))
    n = share_result(r, g, o);
  else
    n = mirrored_value(r, g, o->node, r->s.main);
  int64_t count = o->count;
  if (count < 0 && !dim_mul(-count, r->batch, &count))
    return refuse(r, o->node, "a batch of this size counts too many elements");
  if (n) graph_add_output(r->to, o->role, o->name, n, count);
  return n != NULL;
}

/* ---- the pass ---- */

static bool may_replicate(struct pass_ctx *ctx, const struct graph *g) {
  for (uint32_t i = 0; i < g->count; i++) {
    if (g->nodes[i]->op != OP_gradient) continue;
    diag_error(ctx->diags, LOC_NONE,
               "replicate needs gradients expanded, and %s is not: pass grad must run before",
               g->nodes[i]->name);
    return false;
  }
  bool trains = false, updates = false;
  for (int i = 0; i < g->noutputs; i++) {
    trains |= g->outputs[i].role == OUTPUT_LOSS;
    updates |= g->outputs[i].role == OUTPUT_UPDATE;
  }
  if (g->config.asynchronous && trains && updates && graph_has_whole(g)) {
    diag_error(ctx->diags, LOC_NONE,
               "the rows of all towers are read, and in asynchronous training no worker has them");
    return false;
  }
  if (!g->config.asynchronous || !trains || !updates || graph_has_op(g, OP_newest)) return true;
  diag_error(ctx->diags, LOC_NONE,
             "asynchronous training needs to know which reads are the updates' own: pass versions must run "
             "before grad");
  return false;
}

static void allocate(struct replicate *r) {
  struct arena *a = r->ctx->scratch;
  size_t nodes = (size_t)r->from->count + 1;
  r->ndevices = r->to->config.target.ndevices;
  r->words = r->ndevices / 64 + 1;
  r->dist = arena_new_array(a, nodes, uint8_t);
  r->fixed = arena_new_array(a, nodes, uint8_t);
  r->varies = arena_new_array(a, nodes, uint8_t);
  r->reduction = arena_new_array(a, nodes, const char *);
  r->towers = arena_array(a, nodes * (size_t)r->s.towers, sizeof *r->towers);
  r->local = arena_array(a, nodes * (size_t)r->s.towers, sizeof *r->local);
}

struct graph *pass_replicate(struct pass_ctx *ctx, struct graph *g) {
  if (!may_replicate(ctx, g)) return NULL;
  struct replicate r = {.ctx = ctx, .from = g, .to = graph_create_like(ctx->arena, g)};
  struct config *c = &r.to->config;
  r.to->stage = STAGE_REPLICATED;
  r.local_rows = scales_per_tower(c);
  if (c->batch <= 0 && c->batch_per_replica <= 0) {
    diag_error(ctx->diags, LOC_NONE, "replicate needs the number of rows of the batch");
    diag_help(ctx->diags, LOC_NONE, "give --batch, or a line `batch 128` in the graph's header");
    return NULL;
  }
  if (!strategy_resolve(ctx->arena, g, c, &r.s, ctx->diags)) return NULL;
  if (c->task && !task_graph_is_possible(ctx->scratch, g, c, &r.s)) c->task = NULL;
  if (!task_graph_find(ctx->scratch, c, &r.s, &r.part, ctx->diags)) return NULL;
  if (!task_graph_is_whole(&r.part)) r.s.inputs = r.part.first[r.part.process];
  r.batch = c->batch;
  r.from = g = graph_fix_whole(ctx->scratch, g, r.batch);
  if (!g) return NULL;
  r.single = r.s.towers == 1;
  allocate(&r);
  if (!r.single) r.blocks = row_blocks(ctx->scratch, g);
  bool ok = true;
  for (uint32_t i = 0; i < g->count; i++) ok &= distribute(&r, g->nodes[i]);
  if (!ok) return NULL;
  make_groups(&r);
  /* What the results need of the towers must be known before the towers' groups are marked. */
  struct tower_group *all = &r.groups[r.ngroups - 1];
  mark_needs(&r, all);
  for (int i = 0; i + 1 < r.ngroups; i++) {
    memcpy(r.groups[i].wanted, all->wanted, g->count);
    mark_needs(&r, &r.groups[i]);
  }
  for (int i = 0; i < r.ngroups; i++)
    if (!clone_group(&r, &r.groups[i])) return NULL;
  for (int i = 0; i < g->noutputs; i++)
    if (!add_output(&r, &g->outputs[i])) return NULL;
  return r.to;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The source is computed symbolically, into the reference graph: each of its nodes becomes an expression there, its
 * value for the whole batch (`global`), and, if that lies over the towers, one expression for each tower (`rows`). How
 * an op lies over the towers is its spread, from the table that replication reads, too:
 *
 *   SPREAD_SAME   it does not depend on the batch: one expression for all
 *   SPREAD_ROWS   each row depends on the same row of the operands: one expression per tower, of the tower's operands
 *   reductions    over the batch: each tower's expression is its share, and the value is the all_reduce of all shares
 *   SPREAD_ALL    rows added to a table: those of all towers one behind the other, added once
 *   SPREAD_NOT    there is no rule, and so no proof
 *
 * Equal expressions are one node of the reference. So the placed graph, computed in the same way (placed.c), is right
 * where its results are the same nodes. With one tower every value exists once. */
#include "ir/certify/source.h"
#include "ir/certify/breach.h"
#include "ir/certify/reference.h"
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

#include <string.h>

/* What becomes of the batch in an op. What differs from tower to tower without having rows passes that on. */
static enum spread spread_of(const struct certify *c, const struct node *n) {
  enum spread spread = c->blocks.why[n->id] ? SPREAD_NOT : node_spread(n, NULL);
  bool per_tower = spread == SPREAD_PER_TOWER;
  for (int i = 0; i < n->ninputs && spread == SPREAD_SAME && n->op != OP_assign; i++)
    per_tower = per_tower || c->per_tower[n->inputs[i]->id];
  return per_tower ? SPREAD_ROWS : spread;
}

static bool is_share(enum spread spread) { return spread_joined_by(spread) != NULL; }

/* The reduction of the view's towers' values. */
static struct node *join(struct certify *c, const struct node *n, const char *how) {
  struct node like = {.op = OP_all_reduce,
                      .name = arena_printf(c->arena, "%s of all towers", n->name),
                      .ninputs = c->view->count};
  struct attr a = attr_string(ATTR_reduction, how);
  struct node **rows = &c->rows[(size_t)n->id * (size_t)c->towers + (size_t)c->view->first];
  return certify_make(c, &like, rows, 1, &a, NULL, -1);
}

static bool read_rows(struct certify *c, const struct node *n, enum spread spread, struct node **in) {
  struct node **rows = &c->rows[(size_t)n->id * (size_t)c->towers];
  for (int t = c->view->first; t < c->view->first + c->view->count; t++) {
    if (rows[t]) continue;
    for (int k = 0; k < n->ninputs; k++) {
      uint32_t x = n->inputs[k]->id;
      bool cut = type_batch_axis(&n->inputs[k]->type) >= 0 || c->per_tower[x];
      in[k] = cut ? c->rows[(size_t)x * (size_t)c->towers + (size_t)t] : c->global[x];
    }
    rows[t] = n->op == OP_local   ? certify_own(c, n, t)
              : n->op == OP_input ? certify_input_rows(c, n, c->global[n->id], t)
                                  : certify_instance(c, n, in, t, c->view->rows);
    if (type_batch_axis(&n->type) < 0 && spread == SPREAD_ROWS) rows[t] = certify_lift(c, rows[t], t);
    if (!rows[t]) return false;
  }
  c->per_tower[n->id] = spread == SPREAD_ROWS && type_batch_axis(&n->type) < 0;
  if (spread == SPREAD_ROWS) return true;
  c->global[n->id] = join(c, n, spread_joined_by(spread));
  return c->global[n->id] != NULL;
}

/* The first `axes` axes of x as one. */
static struct node *flat(struct certify *c, struct node *x, int axes, int tower) {
  struct node like = {.op = OP_reshape, .name = arena_printf(c->arena, "%s as rows", x->name), .ninputs = 1};
  struct type t = {.dtype = x->type.dtype, .rank = 1, .dim = {1}};
  for (int i = 0; i < axes; i++) t.dim[0] *= x->type.dim[i];
  for (int i = axes; i < x->type.rank; i++) t.dim[t.rank++] = x->type.dim[i];
  return certify_make(c, &like, &x, 0, NULL, &t, tower);
}

/* What all towers add, or to which rows: those of an input are there as a whole. */
static struct node *added_rows(struct certify *c, const struct node *n, int axes) {
  int first = c->view->first, count = c->view->count;
  if (n->op == OP_input && count == c->towers) return flat(c, c->global[n->id], axes, -1);
  struct node *const *rows = &c->rows[(size_t)n->id * (size_t)c->towers + (size_t)first];
  struct node **of = arena_new_array(c->arena, (size_t)count, struct node *);
  for (int t = 0; t < count; t++)
    if (!(of[t] = flat(c, rows[t], axes, first + t))) return NULL;
  struct node *input = certify_joined_input(of, count); /* which has been through reshapes alone */
  struct node like = {
      .op = OP_all_gather, .name = arena_printf(c->arena, "%s of all towers", n->name), .ninputs = count};
  return input ? input : certify_make(c, &like, of, 0, NULL, NULL, -1);
}

/* Variables and their updates, as the view has them. */
static struct node *read_variable(struct certify *c, const struct node *n, struct node *const *in) {
  bool last = c->view == &c->views[c->nviews - 1];
  struct node **versions =
      &c->versions[(size_t)(n->op == OP_variable ? n : n->inputs[0])->id * (size_t)c->nviews];
  if (n->op == OP_variable) {
    if (!versions[0]) versions[0] = certify_instance(c, n, NULL, -1, c->view->rows);
    return certify_version(c, n, c->view->reads);
  }
  if (n->op == OP_newest) return certify_version(c, n->inputs[0], c->view->newest);
  if (last) return c->nviews > 1 ? certify_version(c, n->inputs[0], c->nviews - 1) : in[1];
  if (c->view->rows > 0) versions[c->view->newest + 1] = in[1];
  return in[1];
}

static bool is_variable(const struct node *n) {
  return n->op == OP_variable || n->op == OP_newest || n->op == OP_assign;
}

static bool read_node(struct certify *c, const struct node *n, struct node **in) {
  if (certify_is_aggregated(c, n)) {
    if ((c->global[n->id] = certify_aggregated(c, n)) && certify_local(c, n, in)) return true;
    certify_breach(c, CLAIM_GRADIENTS, NULL, "%s (%s) of the source joins nothing", n->name, op_of(n)->name);
    return false;
  }
  enum spread spread = c->towers == 1 ? SPREAD_SAME : spread_of(c, n);
  if (spread == SPREAD_NOT) {
    certify_breach(c, CLAIM_TOWERS, NULL, "no rule says how %s (%s) of the source lies over towers", n->name,
                   op_of(n)->name);
    return false;
  }
  bool input = n->op == OP_input;
  for (int k = 0; k < n->ninputs; k++)
    in[k] = k > 0 && spread == SPREAD_ALL ? added_rows(c, n->inputs[k], n->inputs[1]->type.rank)
                                          : c->global[n->inputs[k]->id];
  bool once = spread == SPREAD_SAME || spread == SPREAD_ALL;
  bool read = is_variable(n)  ? (c->global[n->id] = read_variable(c, n, in)) != NULL
              : once || input ? (c->global[n->id] = certify_instance(c, n, in, -1, c->view->rows)) != NULL
                              : true;
  if (read && !once) read = read_rows(c, n, spread, in);
  read = read && certify_local(c, n, in);
  if (!read)
    certify_breach(c, CLAIM_TOWERS, NULL, "%s (%s) of the source means nothing for %lld rows in %d towers",
                   n->name, op_of(n)->name, (long long)c->batch, c->towers);
  return read;
}

/* The towers' rows of a result, put together where the model has them. */
static struct node *join_rows(struct certify *c, const struct node *n) {
  const struct worker_view *all = c->view;
  int64_t blocks = c->blocks.of[n->id];
  struct node **rows = &c->rows[(size_t)n->id * (size_t)c->towers];
  struct node **first = arena_new_array(c->arena, (size_t)all->count, struct node *);
  for (int t = all->first; t < all->first + all->count; t++) {
    c->ref->at.tower = t;
    if (!(first[t - all->first] =
              rows_first(c->ref, certify_tower_name(c, n, t), n, blocks, rows[t], certify_rows(c, t))))
      return NULL;
  }
  struct node like = {.op = OP_all_gather,
                      .name = arena_printf(c->arena, "%s of all towers", n->name),
                      .ninputs = all->count};
  struct node *x = certify_joined_input(first, all->count);
  if (!x) x = certify_make(c, &like, first, 0, NULL, NULL, -1);
  c->ref->at.tower = -1;
  return x ? rows_back(c->ref, n->name, n, blocks, x, c->batch) : NULL;
}

/* Results with rows of the batch. */
static bool read_results(struct certify *c) {
  for (int i = 0; c->towers > 1 && i < c->source->noutputs; i++) {
    const struct node *n = c->source->outputs[i].node;
    if (c->global[n->id]) continue;
    if (type_is_symbolic(&n->type) && (c->global[n->id] = join_rows(c, n))) continue;
    certify_breach(c, CLAIM_RESULTS, NULL, "the rows of %s of the source cannot be joined", n->name);
    return false;
  }
  return true;
}

bool certify_source(struct certify *c) {
  const struct graph *g = c->source;
  struct arena *a = c->arena;
  uint8_t *live = graph_live(a, g);
  c->blocks = row_blocks(a, g);
  c->versions = arena_array(a, (size_t)(g->count + 1) * (size_t)c->nviews, sizeof *c->versions);
  c->rows = arena_array(a, (size_t)(g->count + 1) * (size_t)c->towers, sizeof *c->rows);
  certify_local_begin(c, live);
  int most = 1;
  for (uint32_t i = 0; i < g->count; i++)
    if (g->nodes[i]->ninputs > most) most = g->nodes[i]->ninputs;
  struct node **in = arena_new_array(a, (size_t)most, struct node *);
  struct node ***global = arena_new_array(a, (size_t)c->nviews, struct node **);
  for (int v = 0; v < c->nviews; v++) {
    c->view = &c->views[v];
    c->global = global[v] = arena_new_array(a, g->count + 1, struct node *);
    certify_work(c, g->count);
    for (uint32_t i = 0; i < g->count; i++)
      if (live[i] && !read_node(c, g->nodes[i], in)) return false;
  }
  if (!read_results(c)) return false;
  c->known = c->ref->count;
  c->share = arena_new_array(a, c->known + 1, struct share *);
  for (uint32_t i = 0; c->towers > 1 && i < g->count; i++) {
    if (!live[i] || !node_is(c->global[i], OP_all_reduce)) continue;
    if (certify_is_aggregated(c, g->nodes[i])) continue;
    enum spread spread = spread_of(c, g->nodes[i]);
    if (!is_share(spread)) continue;
    enum dist how = dist_partial(spread_joined_by(spread));
    for (int t = 0; t < c->towers; t++) {
      struct node *x = c->rows[(size_t)i * (size_t)c->towers + (size_t)t], *in_worker = NULL;
      for (int v = 0; v + 1 < c->nviews; v++)
        if (t >= c->views[v].first && t < c->views[v].first + c->views[v].count) in_worker = global[v][i];
      if (x->tower == t) certify_note_share(c, x, c->global[i], in_worker, how);
    }
  }
  certify_local_shares(c);
  return true;
}

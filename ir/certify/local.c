/* SPDX-License-Identifier: Apache-2.0 */
/* Local values, as the source says them: the value of a node for a tower that sees its own rows and no others.
 * Aggregates join such values, and variables that are joined on read have a copy on each tower.
 *
 * A node varies if its value for one tower may differ from that for the whole batch. Rows are the same in both
 * readings: a local value is made of the model's rows. A tower without rows has no part in an aggregate, and writes
 * its copies only what depends on nothing. */
#include "ir/certify/reference.h"
#include "ir/certify/source.h"
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

#include <string.h>

static struct node **of_tower(const struct certify *c, struct node **all, const struct node *n, int tower) {
  return &all[(size_t)n->id * (size_t)c->towers + (size_t)tower];
}

static bool is_rows(const struct certify *c, const struct node *n) {
  return n->op == OP_input || n->op == OP_local || (!c->local_rows && type_batch_axis(&n->type) >= 0);
}

static bool varies(const struct certify *c, const struct node *n) {
  return c->varies[n->id] && n->op != OP_aggregate;
}

void certify_local_begin(struct certify *c, const uint8_t *live) {
  const struct graph *g = c->source;
  c->varies = arena_new_array(c->arena, g->count + 1, uint8_t);
  c->per_tower = arena_new_array(c->arena, g->count + 1, uint8_t);
  c->fixed = arena_new_array(c->arena, g->count + 1, uint8_t);
  c->wants_local = arena_new_array(c->arena, g->count + 1, uint8_t);
  c->local_rows = scales_per_tower(&c->placed->config);
  bool any = false;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    c->varies[i] = node_varies(n);
    c->fixed[i] = !node_is_external(n);
    certify_work(c, 1 + (uint64_t)n->ninputs);
    for (int k = 0; k < n->ninputs; k++) {
      c->varies[i] |= varies(c, n->inputs[k]);
      c->fixed[i] &= c->fixed[n->inputs[k]->id];
    }
    any = any || n->op == OP_aggregate || n->op == OP_local || n->op == OP_tower_id || is_on_read(n);
  }
  for (uint32_t i = g->count; any && i-- > 0;) {
    const struct node *n = g->nodes[i];
    bool joins = n->op == OP_local || (n->op == OP_aggregate && !joins_given(n)) ||
                 (n->op == OP_assign && is_on_read(n->inputs[0]));
    if (!live[i] || (!joins && !c->wants_local[i]) || (!joins && is_rows(c, n))) continue;
    for (int k = 0; k < n->ninputs; k++) c->wants_local[n->inputs[k]->id] |= varies(c, n->inputs[k]);
  }
  if (!any) return;
  c->local = arena_array(c->arena, (size_t)(g->count + 1) * (size_t)c->towers, sizeof *c->local);
  c->terms = arena_array(c->arena, (size_t)(g->count + 1) * (size_t)c->towers, sizeof *c->terms);
  c->sums = arena_array(c->arena, (size_t)(g->count + 1) * (size_t)c->nviews, sizeof *c->sums);
}

/* ---- local values ---- */

static struct node *local_of(const struct certify *c, const struct node *x, int tower) {
  if (!varies(c, x)) return c->global[x->id];
  return *of_tower(c, is_on_read(x) || is_rows(c, x) ? c->rows : c->local, x, tower);
}

/* n for a tower that sees its own rows. */
static struct node *value_on(struct certify *c, const struct node *n, struct node **in, int tower) {
  if (n->op == OP_tower_id) return certify_tower_number(c, n, tower);
  for (int k = 0; k < n->ninputs; k++)
    if (!(in[k] = local_of(c, n->inputs[k], tower))) return NULL;
  struct node *local = certify_instance(c, n, in, tower, certify_rows(c, tower));
  return type_is_symbolic(&n->type) ? local : certify_lift(c, local, tower);
}

bool certify_local(struct certify *c, const struct node *n, struct node **in) {
  if (c->towers == 1 || !c->wants_local[n->id] || is_rows(c, n) || is_on_read(n)) return true;
  for (int t = c->view->first; t < c->view->first + c->view->count; t++) {
    struct node **local = of_tower(c, c->local, n, t);
    bool again = n->op == OP_newest; /* of each view */
    if ((!*local || again) && !(*local = value_on(c, n, in, t))) return false;
  }
  return true;
}

/* ---- joining ---- */

static bool takes_part(const struct certify *c, int tower) {
  return certify_rows(c, tower) > 0 || (c->view->rows == 0 && tower == c->view->first);
}

/* The towers' terms as one: all of them, or the first alone. */
static struct node *join(struct certify *c, const struct node *n, const char *how, int first, int count,
                         int parts) {
  bool only = strcmp(how, "only_first_replica") == 0;
  struct attr by = attr_string(ATTR_reduction, only ? how : "sum");
  struct node like = {.op = OP_all_reduce,
                      .name = arena_printf(c->arena, "%s of all towers", n->name),
                      .ninputs = only ? 1 : count};
  struct node *sum = certify_make(c, &like, of_tower(c, c->terms, n, first), 1, &by, NULL, -1);
  if (!only) c->sums[(size_t)n->id * (size_t)c->nviews + (size_t)(c->view - c->views)] = sum;
  if (!sum || strcmp(how, "mean") != 0) return sum;
  return build2(c->ref, OP_div, sum, certify_number(c, &n->type, parts, -1));
}

static struct node *join_aggregate(struct certify *c, const struct node *n, struct node *in) {
  const char *how = node_string(n, ATTR_reduction);
  int first = c->view->first, count = c->view->count, parts = 0;
  if (c->towers == 1) return in;
  for (int t = first; t < first + count; t++) parts += takes_part(c, t);
  const struct node *x = n->inputs[0];
  if (joins_given(n) ? !c->per_tower[x->id] : !varies(c, x)) {
    if (strcmp(how, "sum") != 0) return in;
    return node_int_or(n, ATTR_each, 0) ? build2(c->ref, OP_mul, in, certify_number(c, &n->type, parts, -1))
                                        : NULL;
  }
  bool only = strcmp(how, "only_first_replica") == 0;
  for (int t = first; t < first + count; t++)
    *of_tower(c, c->terms, n, t) = !takes_part(c, t) && !only ? certify_number(c, &n->type, 0, t)
                                   : joins_given(n)           ? *of_tower(c, c->rows, x, t)
                                                              : local_of(c, x, t);
  return join(c, n, how, first, count, parts);
}

static struct node *join_copies(struct certify *c, const struct node *n) {
  for (int t = 0; t < c->towers; t++) {
    struct node like = *n, **copy = of_tower(c, c->rows, n, t);
    like.name = t ? arena_printf(c->arena, "tower_%d/%s", t, n->name) : n->name;
    if (!*copy) *copy = certify_make(c, &like, NULL, n->nattrs, n->attrs, &n->type, t);
    if (!*copy) return NULL;
    *of_tower(c, c->terms, n, t) = *copy;
  }
  return join(c, n, node_string(n, ATTR_aggregation), 0, c->towers, c->towers);
}

static struct node *write_copies(struct certify *c, const struct node *n) {
  for (int t = c->view->first; t < c->view->first + c->view->count; t++)
    if (c->fixed[n->inputs[1]->id] || takes_part(c, t))
      *of_tower(c, c->rows, n, t) = local_of(c, n->inputs[1], t);
  return c->global[n->inputs[0]->id];
}

struct node *certify_own(struct certify *c, const struct node *n, int tower) {
  return certify_lift(c, local_of(c, n->inputs[0], tower), tower);
}

bool certify_is_aggregated(const struct certify *c, const struct node *n) {
  return n->op == OP_aggregate || certify_has_tower_copies(c, n) ||
         (n->op == OP_assign && certify_has_tower_copies(c, n->inputs[0]));
}

struct node *certify_aggregated(struct certify *c, const struct node *n) {
  if (n->op == OP_aggregate) return join_aggregate(c, n, c->global[n->inputs[0]->id]);
  return n->op == OP_variable ? join_copies(c, n) : write_copies(c, n);
}

void certify_local_shares(struct certify *c) {
  for (uint32_t i = 0; c->local && i < c->source->count; i++) {
    struct node **sums = &c->sums[(size_t)i * (size_t)c->nviews], *all = sums[c->nviews - 1];
    for (int t = 0; all && t < c->towers; t++) {
      struct node *term = c->terms[(size_t)i * (size_t)c->towers + (size_t)t], *worker = NULL;
      for (int v = 0; v + 1 < c->nviews; v++)
        if (t >= c->views[v].first && t < c->views[v].first + c->views[v].count) worker = sums[v];
      if (term) certify_note_share(c, term, all, worker, DIST_PARTIAL);
    }
  }
}

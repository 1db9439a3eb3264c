/* SPDX-License-Identifier: Apache-2.0 */
/* How each value lies over the towers: what depends on the batch is sliced, what joins its rows is one tower's share
 * of a sum, everything else is the same everywhere. */
#include "passes/replicate/distribute.h"

#include "ir/ops/op_id.h"

#include <string.h>

bool on_towers(const struct replicate *r, const struct node *n) {
  return r->dist[n->id] == DIST_PER_REPLICA || r->dist[n->id] == DIST_PARTIAL;
}

bool is_aggregated(const struct node *n) { return n->op == OP_aggregate || is_on_read(n); }

bool reads_local(const struct node *n) {
  return n->op == OP_local || n->op == OP_assign || (is_aggregated(n) && !joins_given(n));
}

bool joins_rows(const struct node *n) { return node_spread(n, NULL) == SPREAD_ALL; }

bool has_local(const struct replicate *r, const struct node *n) {
  return r->varies[n->id] && n->op != OP_aggregate;
}

bool is_model_rows(const struct replicate *r, const struct node *n) {
  return n->op == OP_input || n->op == OP_local || (!r->local_rows && type_batch_axis(&n->type) >= 0);
}

bool passes_partial(const struct replicate *r, const struct node *n) {
  const struct op_info *op = op_of(n);
  if (type_batch_axis(&n->type) >= 0) return false;
  for (int i = 0; i < n->ninputs; i++)
    if (r->dist[n->inputs[i]->id] != DIST_PARTIAL || strcmp(r->reduction[n->inputs[i]->id], "sum") != 0 ||
        is_aggregated(n->inputs[i]))
      return false;
  if (op->linear_jointly) return true;
  return n->ninputs == 1 && (op->linear & 1);
}

bool refuse(struct replicate *r, const struct node *n, const char *why) {
  diag_error(r->ctx->diags, n->loc, "%s (%s) cannot be spread over towers: %s", n->name, op_of(n)->name, why);
  return false;
}

/* Notes whether n varies; false after an error. */
static bool distribute_local(struct replicate *r, const struct node *n) {
  bool varies = node_varies(n);
  for (int k = 0; k < n->ninputs; k++) varies |= has_local(r, n->inputs[k]);
  r->varies[n->id] = varies;
  if (n->op != OP_aggregate || varies || r->single) return true;
  bool sum = strcmp(node_string(n, ATTR_reduction), "sum") == 0;
  if (joins_given(n)) return true;
  if (!sum || node_int_or(n, ATTR_each, 0)) return true;
  diag_error(r->ctx->diags, n->loc,
             "%s cannot be summed over %d towers: its value is the same in all of them", n->name,
             r->s.towers);
  diag_help(
      r->ctx->diags, LOC_NONE,
      "aggregation(mean) keeps the value; `+=` adds it once for each tower; a sum is of what towers have of "
      "their own rows");
  return false;
}

/* What towers write must be the same in all of them, unless each has a copy. */
static bool distribute_assign(struct replicate *r, const struct node *n) {
  const struct node *v = n->inputs[0], *value = n->inputs[1];
  r->dist[n->id] = is_on_read(v) && !r->single ? DIST_PER_REPLICA : DIST_MIRRORED;
  if (is_on_read(v) || r->dist[value->id] != DIST_PER_REPLICA) return true;
  diag_error(r->ctx->diags, n->loc, "%s is assigned what differs from tower to tower, %s", v->name,
             value->name);
  diag_help(r->ctx->diags, LOC_NONE,
            "say what becomes of the towers' values: declare it with aggregation(sum), aggregation(mean) or "
            "aggregation(only_first_replica)");
  return false;
}

/* What becomes of a value without rows of the batch. */
static void distribute_joined(struct replicate *r, const struct node *n, enum spread spread, bool per_tower) {
  switch (spread) {
  case SPREAD_SUM:
  case SPREAD_MAX:
  case SPREAD_MIN:
  case SPREAD_NOT: /* of one tower, which has all rows */
    r->dist[n->id] = DIST_PARTIAL;
    r->reduction[n->id] = spread_joined_by(spread);
    if (!r->reduction[n->id]) r->reduction[n->id] = "";
    return;
  case SPREAD_SAME:
  case SPREAD_PER_TOWER:
    if (per_tower || spread == SPREAD_PER_TOWER) {
      r->dist[n->id] = r->single ? DIST_MIRRORED : DIST_PER_REPLICA;
    } else if (n->ninputs > 0 && passes_partial(r, n)) {
      r->dist[n->id] = DIST_PARTIAL;
      r->reduction[n->id] = "sum";
    }
    return;
  case SPREAD_ROWS:
  case SPREAD_ALL: return;
  }
}

bool distribute(struct replicate *r, const struct node *n) {
  bool per_tower = false, fixed = !node_is_external(n);
  for (int i = 0; i < n->ninputs; i++) {
    const struct node *x = n->inputs[i];
    per_tower |= r->dist[x->id] == DIST_PER_REPLICA && type_batch_axis(&x->type) < 0;
    fixed &= r->fixed[x->id];
  }
  r->fixed[n->id] = fixed;
  r->dist[n->id] = type_is_symbolic(&n->type) ? DIST_PER_REPLICA : DIST_MIRRORED;
  const char *why = NULL;
  enum spread spread = node_spread(n, &why);
  if (!r->single && !why) why = r->blocks.why[n->id];
  if (!r->single && why) return refuse(r, n, why);
  if (!distribute_local(r, n)) return false;
  if (n->op == OP_assign) return distribute_assign(r, n);
  if (is_aggregated(n) && !r->single) {
    bool shares = n->op == OP_variable || (joins_given(n) ? r->dist[n->inputs[0]->id] == DIST_PER_REPLICA
                                                          : r->varies[n->inputs[0]->id]);
    r->dist[n->id] = shares ? DIST_PARTIAL : DIST_MIRRORED;
    r->reduction[n->id] = node_string(n, n->op == OP_variable ? ATTR_aggregation : ATTR_reduction);
    return true;
  }
  if (!type_is_symbolic(&n->type)) distribute_joined(r, n, spread, per_tower);
  return true;
}

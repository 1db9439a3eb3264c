/* How each value lies over the towers: what depends on the batch is sliced, what joins its rows is one tower's share
 * of a sum, everything else is the same everywhere. */
#include "passes/replicate.h"

#include <string.h>

bool on_towers(const struct replicate *r, const struct node *n) {
  return r->dist[n->id] == DIST_PER_REPLICA || r->dist[n->id] == DIST_PARTIAL;
}

bool passes_partial(const struct replicate *r, const struct node *n) {
  const struct op_info *op = op_of(n);
  if (type_batch_axis(&n->type) >= 0) return false;
  for (int i = 0; i < n->ninputs; i++)
    if (r->dist[n->inputs[i]->id] != DIST_PARTIAL || strcmp(r->reduction[n->inputs[i]->id], "sum") != 0 ||
        joins_own(n->inputs[i]))
      return false;
  if (op->linear_jointly) return true;
  return n->ninputs == 1 && (op->linear & 1);
}

bool refuse(struct replicate *r, const struct node *n, const char *why) {
  diag_error(r->ctx->diags, n->loc, "%s (%s) cannot be spread over towers: %s", n->name, op_of(n)->name, why);
  return false;
}

/* The batch axis of a reshape must keep what stands before it: then a tower's rows stay one block. */
static bool reshape_keeps_batch(const struct node *n) {
  const struct type *x = &n->inputs[0]->type, *y = &n->type;
  int64_t before_x = 1, before_y = 1;
  for (int i = 0; i < type_batch_axis(x); i++) before_x *= x->dim[i];
  for (int i = 0; i < type_batch_axis(y); i++) before_y *= y->dim[i];
  return before_x == before_y;
}

/* Why no slice of n's result comes from a slice of its operands, or NULL. */
static const char *mixes_rows(const struct node *n) {
  int axis = type_batch_axis(&n->type);
  if (n->op == OP_input && axis > 0) return "the batch must be an input's first axis";
  if ((n->op == OP_random_uniform || n->op == OP_random_normal) && axis > 0)
    return "random values need the batch on their first axis";
  if (n->op == OP_reshape && axis >= 0 && !reshape_keeps_batch(n))
    return "it would mix the batch with other axes";
  if (n->op == OP_concat && axis >= 0 && node_int(n, ATTR_axis) == axis)
    return "joining along the batch would change the order of the rows";
  return NULL;
}

/* How the towers' shares of a value that joins the rows become the whole, or NULL. */
static const char *joins_by(const struct node *n) {
  switch (n->op) {
  case OP_reduce_sum:
  case OP_matmul: return "sum";
  case OP_reduce_max: return "max";
  case OP_reduce_min: return "min";
  default: return NULL;
  }
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

bool distribute(struct replicate *r, const struct node *n) {
  bool sliced = false, apart = n->op == OP_tower_id, fixed = n->op != OP_variable && n->op != OP_input;
  for (int i = 0; i < n->ninputs; i++) {
    bool own = r->dist[n->inputs[i]->id] == DIST_PER_REPLICA;
    sliced |= own && type_batch_axis(&n->inputs[i]->type) >= 0;
    apart |= own && type_batch_axis(&n->inputs[i]->type) < 0;
    fixed &= r->fixed[n->inputs[i]->id];
  }
  r->fixed[n->id] = fixed;
  int axis = type_batch_axis(&n->type);
  r->dist[n->id] = axis >= 0 ? DIST_PER_REPLICA : DIST_MIRRORED;
  const char *why = r->single ? NULL : mixes_rows(n);
  if (why) return refuse(r, n, why);
  if (!distribute_own(r, n)) return false;
  if (n->op == OP_assign) return distribute_assign(r, n);
  if (joins_own(n) && !r->single) {
    bool own = n->op == OP_variable || r->varies[n->inputs[0]->id];
    r->dist[n->id] = own ? DIST_PARTIAL : DIST_MIRRORED;
    r->reduction[n->id] = node_string(n, n->op == OP_variable ? ATTR_aggregation : ATTR_reduction);
    return true;
  }
  if (sliced && axis < 0 && !joins_rows(n)) {
    r->dist[n->id] = DIST_PARTIAL;
    r->reduction[n->id] = joins_by(n);
    if (!r->reduction[n->id] && !r->single)
      return refuse(r, n, "it joins the rows of the batch in a way that no sum over towers can");
    if (!r->reduction[n->id]) r->reduction[n->id] = ""; /* one tower has it whole */
  } else if (axis < 0 && apart && !joins_rows(n)) {
    r->dist[n->id] = r->single ? DIST_MIRRORED : DIST_PER_REPLICA; /* each tower has its own */
  } else if (n->ninputs > 0 && passes_partial(r, n)) {
    r->dist[n->id] = DIST_PARTIAL;
    r->reduction[n->id] = "sum";
  }
  return true;
}

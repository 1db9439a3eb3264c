/* SPDX-License-Identifier: Apache-2.0 */
/* Effects, distribution and grouping: what passes insert. */
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

#include <string.h>

#define WITH_GRADIENT(name_, kind_, traits_, ...)            \
  const struct op_info op_##name_ = {.name = #name_,         \
                                     .kind = kind_,          \
                                     .dtypes = DTYPE_CUSTOM, \
                                     .traits = traits_,      \
                                     .domain = DOMAIN_NONE,  \
                                     __VA_ARGS__};
#define META(name, kind, traits, ...) WITH_GRADIENT(name, kind, OP_NO_GRADIENT | (traits), __VA_ARGS__)

/* The variable holds `value` from the next step on. Its own result is that value. */
static bool assign_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct node *v = n->inputs[0];
  if (v->op != OP_variable) {
    *why = arena_printf(a, "only a variable can be assigned, and %s is none", v->name);
    return false;
  }
  if (!type_equal(&v->type, &n->inputs[1]->type)) {
    *why = arena_printf(a, "cannot assign %s to the variable %s : %s", type_text(a, &n->inputs[1]->type),
                        v->name, type_text(a, &v->type));
    return false;
  }
  *out = v->type;
  return true;
}
META(assign, KIND_EFFECT, 0, .min_inputs = 2, .max_inputs = 2, .roles = {"variable", "value"},
     .infer = assign_infer)

/* d loss / d variable, until the grad pass has expanded it. */
static bool gradient_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *loss = &n->inputs[0]->type, *x = &n->inputs[1]->type;
  if (loss->rank != 0 || !dtype_is_float(loss->dtype) || !dtype_is_float(x->dtype)) {
    *why = arena_printf(a, "a gradient needs a scalar loss and floating point operands, not %s by %s",
                        type_text(a, loss), type_text(a, x));
    return false;
  }
  *out = *x;
  return true;
}
META(gradient, KIND_META, OP_SOURCE_ONLY, .min_inputs = 2, .max_inputs = 2, .roles = {"loss", "variable"},
     .infer = gradient_infer)

/* A variable as the updates of the workers before have left it in this step, for asynchronous training; what reads the
 * variable itself may see an older version. */
static bool newest_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  if (n->inputs[0]->op != OP_variable) {
    *why = arena_printf(a, "only variables have versions, and %s is none", n->inputs[0]->name);
    return false;
  }
  *out = n->inputs[0]->type;
  return true;
}
META(newest, KIND_META, OP_SOURCE_ONLY, .min_inputs = 1, .max_inputs = 1, .roles = {"variable"},
     .infer = newest_infer)

/* What the towers have of x, each computed from its own rows, as one value: the reductions of the batch that x is made
 * of are those of a tower. With `given` x is what towers have of it in the model itself, and gradients flow back. */
static bool aggregate_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type;
  const char *how = node_string(n, ATTR_reduction);
  if (!is_aggregation(how))
    *why = arena_printf(a, "there is no aggregation %s", how);
  else if (type_is_symbolic(x) || x->dtype == DT_BOOL)
    *why = arena_printf(a, "numbers are aggregated, not %s", type_text(a, x));
  else
    return *out = *x, true;
  return false;
}

/* A change of one tower's value changes the sum as much, and the mean by its share: one of the towers that have a
 * part. */
static void aggregate_grad(struct grad *c, const struct node *n, struct node *dy) {
  if (!node_int_or(n, ATTR_given, 0)) return;
  if (strcmp(node_string(n, ATTR_reduction), "mean") == 0)
    dy = build2(c->g, OP_div, dy, build_sum_of_towers(c->g, build_fill(c->g, &n->type, 1)));
  grad_add(c, n, 0, dy);
}
WITH_GRADIENT(aggregate, KIND_META, OP_SOURCE_ONLY, .min_inputs = 1, .max_inputs = 1,
              .attrs = ATTR_BIT(reduction), .optional_attrs = ATTR_BIT(each) | ATTR_BIT(given),
              .roles = {"x"}, .infer = aggregate_infer, .grad = aggregate_grad)

/* What each tower has of x, computed from its own rows: the reductions of the batch that x is made of are those of the
 * tower, rows are the model's. */
static bool local_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type;
  if (type_is_symbolic(x) || type_has_whole(x)) {
    *why = arena_printf(a, "what has no rows is a tower's own, not %s", type_text(a, x));
    return false;
  }
  *out = *x;
  return true;
}
static void local_grad(struct grad *c, const struct node *n, struct node *dy) { c->local(c, n, dy); }
WITH_GRADIENT(local, KIND_META, OP_PER_TOWER | OP_SOURCE_ONLY, .min_inputs = 1, .max_inputs = 1,
              .roles = {"x"}, .infer = local_infer, .grad = local_grad)

/* The rows of one tower: from `offset`, as many as the type says. */
static bool split_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type;
  int64_t first = node_int(n, ATTR_offset);
  bool ok = x->rank == out->rank && x->rank > 0 && x->dtype == out->dtype && out->dim[0] >= 0 &&
            first <= x->dim[0] && out->dim[0] <= x->dim[0] - first;
  for (int i = 1; ok && i < x->rank; i++) ok = x->dim[i] == out->dim[i];
  if (!ok)
    *why = arena_printf(a, "%s from row %lld is no part of %s", type_text(a, out), (long long)first,
                        type_text(a, x));
  return ok;
}
static bool split_view(const struct node *n, int64_t *offset) {
  *offset = node_int(n, ATTR_offset) * type_row_bytes(&n->type);
  return true;
}
META(split, KIND_META, OP_TYPED, .since = STAGE_REPLICATED, .min_inputs = 1, .max_inputs = 1,
     .attrs = ATTR_BIT(offset), .roles = {"x"}, .infer = split_infer, .view = split_view)

static bool same_types(const struct node *n, struct type *out, struct arena *a, const char **why) {
  for (int i = 1; i < n->ninputs; i++)
    if (!type_equal(&n->inputs[0]->type, &n->inputs[i]->type)) {
      *why = arena_printf(a, "%s needs operands of one type, not %s and %s", op_of(n)->name,
                          type_text(a, &n->inputs[0]->type), type_text(a, &n->inputs[i]->type));
      return false;
    }
  *out = n->inputs[0]->type;
  return true;
}

/* The sum (or maximum) over the towers, one operand per tower in tower order; of only_first_replica the first. */
static bool all_reduce_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const char *r = node_string(n, ATTR_reduction);
  if (is_collective(n) && strcmp(r, "sum") != 0) {
    *why = arena_printf(a, "devices do no %s together by %s: only a sum", r, node_string(n, ATTR_by));
    return false;
  }
  const struct attr *order = node_attr(n, ATTR_order);
  if (order && (order->count < 3 || order->count % 2 == 0)) {
    *why =
        arena_printf(a, "the order of a sum is its number and ranges of tasks, not %d numbers", order->count);
    return false;
  }
  return same_types(n, out, a, why);
}
META(all_reduce, KIND_META, 0, .since = STAGE_REPLICATED, .min_inputs = 1, .max_inputs = -1,
     .attrs = ATTR_BIT(reduction), .optional_attrs = ATTR_BIT(by) | ATTR_BIT(order), .roles = {"x"},
     .infer = all_reduce_infer)

/* The rows of all towers one behind the other, one operand per tower in tower order. */
static bool all_gather_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  struct type t = n->inputs[0]->type;
  bool ok = t.rank > 0;
  for (int i = 1; ok && i < n->ninputs; i++) {
    const struct type *x = &n->inputs[i]->type;
    ok = x->rank == t.rank && x->dtype == t.dtype;
    for (int k = 1; ok && k < t.rank; k++) ok = x->dim[k] == t.dim[k];
    ok = ok && dim_add(t.dim[0], x->dim[0], &t.dim[0]);
  }
  if (!ok) *why = arena_printf(a, "all_gather needs rows of one type");
  *out = t;
  return ok;
}
META(all_gather, KIND_META, 0, .since = STAGE_REPLICATED, .min_inputs = 1, .max_inputs = -1, .roles = {"x"},
     .infer = all_gather_infer)

/* The same value on another device. */
static bool copy_view(const struct node *n, int64_t *offset) {
  (void)offset;
  return node_int_or(n, ATTR_alias, 0) != 0;
}
META(copy, KIND_META, OP_MOVES, .since = STAGE_PLACED, .min_inputs = 1, .max_inputs = 1,
     .optional_attrs = ATTR_BIT(alias), .roles = {"x"}, .infer = same_types, .view = copy_view)

/* In the part of one task: a value that goes to device `peer` of another task. */
META(send, KIND_META, OP_NO_CSE, .since = STAGE_REPLICATED, .min_inputs = 1, .max_inputs = 1,
     .attrs = ATTR_BIT(order) | ATTR_BIT(peer), .roles = {"x"}, .infer = same_types)

/* And one that comes from device `peer` of another task. Without an order nothing comes: the task knows of the value
 * that it is there. */
META(remote, KIND_META, OP_TYPED | OP_NO_CSE | OP_EXTERNAL, .since = STAGE_REPLICATED, .min_inputs = 0,
     .max_inputs = 0, .attrs = ATTR_BIT(peer), .optional_attrs = ATTR_BIT(order))

/* One kernel: `body` is a graph with one input per operand, in order, and one output per result. The type is
 * that of the first result; the others are read through `output`. */
META(fused, KIND_META, OP_TYPED | OP_NO_CSE, .since = STAGE_FUSED, .min_inputs = 0, .max_inputs = -1,
     .attrs = ATTR_BIT(body), .roles = {"x"})

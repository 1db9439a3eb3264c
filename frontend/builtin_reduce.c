/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: sum(x, axis = 1), mean(x), max(x, axis = [0, 1], keep = true); max(x, y) of two operands is
 * elementwise. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

/* The axes as a bit mask; without `axis`, all of them. */
static bool axes_of(struct resolver *r, const struct value *v, int rank, uint32_t *axes) {
  *axes = 0;
  if (v->kind == VALUE_NONE) {
    *axes = (1u << rank) - 1;
    return true;
  }
  int n = v->kind == VALUE_LIST ? v->list.count : 1;
  for (int i = 0; i < n; i++) {
    struct value item = v->kind == VALUE_LIST ? v->list.items[i] : *v;
    item.at = v->at;
    int axis;
    if (!value_axis(r, &item, rank, &axis)) return false;
    if (*axes >> axis & 1) {
      report(r, v->at, "axis %d is listed twice", axis);
      return false;
    }
    *axes |= 1u << axis;
  }
  return true;
}

/* y, which lacks the axes, with 1 in their place. */
static struct node *keep_axes(struct resolver *r, struct node *y, const struct type *x, uint32_t axes,
                              bool keep) {
  if (!keep || !y) return y;
  struct type t = *x;
  t.dtype = y->type.dtype;
  for (int i = 0; i < t.rank; i++)
    if (axes >> i & 1) t.dim[i] = 1;
  return build_reshape(r->g, y, &t);
}

struct reduce_builtin {
  enum op_id op;
  enum dtype of_byte,
      of_int; /* what bool and u8, and other integers are converted to first; DT_COUNT: none */
  bool mean;
};

static struct value reduce(struct resolver *r, const struct reduce_builtin *how, const struct value *x_value,
                           const struct value *axis, const struct value *keep_value, struct loc loc) {
  struct node *x = tensor_node(r, x_value, "`x`");
  uint32_t axes;
  bool keep;
  if (!x || !axes_of(r, axis, x->type.rank, &axes) || !value_flag(r, keep_value, "keep", &keep))
    return value_error();
  if (x->type.rank == 0 && (!how->mean || dtype_is_float((enum dtype)x->type.dtype))) return *x_value;
  enum dtype d = x->type.dtype;
  enum dtype to = d == DT_BOOL || d == DT_U8 ? how->of_byte : dtype_is_int(d) ? how->of_int : DT_COUNT;
  if (to != DT_COUNT) x = build_cast(r->g, x, to);
  if (!x) return value_tensor(r, NULL, loc);
  struct node *sum = build_reduce(r->g, how->op, x, axes), *y = sum;
  if (how->mean && x->type.rank == 0) return value_tensor(r, x, loc);
  if (how->mean && sum) {
    struct node *count = build_count(r->g, &x->type, axes, (enum dtype)x->type.dtype);
    y = build2(r->g, OP_div, sum, build_broadcast_to(r->g, count, &sum->type));
  }
  struct value v = value_tensor(r, keep_axes(r, y, &x->type, axes, keep), loc);
  if (v.kind != VALUE_TENSOR || how->op != OP_reduce_sum || sum->type.rank || !type_is_symbolic(&x->type) ||
      type_has_whole(&x->type))
    return v;
  v.tensor.sum = sum;
  v.tensor.elements = how->mean ? type_count(&x->type) : 0;
  return v;
}

#define REDUCTION(name, ...)                                                             \
  static struct value run_##name(struct resolver *r, struct value *args, struct loc loc, \
                                 const struct role *role) {                              \
    static const struct reduce_builtin how = {__VA_ARGS__};                              \
    (void)role;                                                                          \
    return reduce(r, &how, &args[0], &args[1], &args[2], loc);                           \
  }
REDUCTION(sum, OP_reduce_sum, DT_I64, DT_COUNT, false)
REDUCTION(mean, OP_reduce_sum, DT_F32, DT_F32, true)
REDUCTION(prod, OP_reduce_prod, DT_I64, DT_COUNT, false)
REDUCTION(any, OP_reduce_max, DT_COUNT, DT_COUNT, false)
REDUCTION(all, OP_reduce_min, DT_COUNT, DT_COUNT, false)

static struct value extreme(struct resolver *r, enum op_id reduction, enum op_id op, struct value *args,
                            struct loc loc) {
  const struct reduce_builtin how = {reduction, DT_COUNT, DT_COUNT, false};
  if (args[1].kind == VALUE_NONE) return reduce(r, &how, &args[0], &args[2], &args[3], loc);
  if (args[2].kind == VALUE_NONE && args[3].kind == VALUE_NONE) return elementwise(r, op, args, 2, loc);
  report(r, loc, "%s of two operands has no axis", op_table[op]->name);
  report_help(r, "to reduce an axis name it: `%s(x, axis = 1)`", op_table[op]->name);
  return value_error();
}

static struct value run_max(struct resolver *r, struct value *args, struct loc loc, const struct role *role) {
  (void)role;
  return extreme(r, OP_reduce_max, OP_max, args, loc);
}

static struct value run_min(struct resolver *r, struct value *args, struct loc loc, const struct role *role) {
  (void)role;
  return extreme(r, OP_reduce_min, OP_min, args, loc);
}

static struct value arg(struct resolver *r, enum op_id op, struct value *args, struct loc loc) {
  struct node *x = tensor_node(r, &args[0], "`x`");
  int axis;
  if (!x || !value_axis(r, &args[1], x->type.rank, &axis)) return value_error();
  if (x->type.dim[axis] == 0) {
    report(r, loc, "an axis of no elements has no %s: %s", op_table[op]->name, type_text(r->arena, &x->type));
    return value_error();
  }
  return value_tensor(r, build_arg(r->g, op, x, axis), loc);
}

static struct value run_argmax(struct resolver *r, struct value *args, struct loc loc,
                               const struct role *role) {
  (void)role;
  return arg(r, OP_argmax, args, loc);
}

static struct value run_argmin(struct resolver *r, struct value *args, struct loc loc,
                               const struct role *role) {
  (void)role;
  return arg(r, OP_argmin, args, loc);
}

/* moments(x, axis): the list of x's mean and its variance. */
static struct value run_moments(struct resolver *r, struct value *args, struct loc loc,
                                const struct role *role) {
  (void)role;
  struct node *x = tensor_node(r, &args[0], "`x`");
  uint32_t axes;
  if (!x || !axes_of(r, &args[1], x->type.rank, &axes)) return value_error();
  if (dtype_is_float((enum dtype)x->type.dtype)) return moments(r, x, axes, loc);
  report(r, loc, "moments are those of floats, not of %s", type_text(r->arena, &x->type));
  report_help(r, "convert the tensor: `cast(x, f32)`");
  return value_error();
}

/* ratio(x, y): x / y, and 0 where y is 0. */
static struct value run_ratio(struct resolver *r, struct value *args, struct loc loc,
                              const struct role *role) {
  struct value none[2] = {args[1], value_int(0)}, safe[3], q[2] = {args[0]}, result[3];
  (void)role;
  bool number = args[1].kind == VALUE_INT || args[1].kind == VALUE_FLOAT || args[1].kind == VALUE_BATCH;
  if (!number && !tensor_node(r, &args[1], "`y`")) return value_error();
  safe[0] = elementwise(r, OP_eq, none, 2, loc);
  safe[1] = value_int(1);
  safe[2] = args[1];
  q[1] = elementwise(r, OP_select, safe, 3, loc);
  result[0] = safe[0];
  result[1] = value_int(0);
  result[2] = elementwise(r, OP_div, q, 2, loc);
  if (safe[0].kind == VALUE_BOOL && !safe[0].b) return result[2];
  return elementwise(r, OP_select, result, 3, loc);
}

const struct builtin builtins_reduce[] = {
    {"sum", {"x", "axis = none", "keep = false"}, 1, run_sum},
    {"mean", {"x", "axis = none", "keep = false"}, 1, run_mean},
    {"prod", {"x", "axis = none", "keep = false"}, 1, run_prod},
    {"any", {"x", "axis = none", "keep = false"}, 1, run_any},
    {"all", {"x", "axis = none", "keep = false"}, 1, run_all},
    {"max", {"x", "y = ...", "axis = none", "keep = false"}, 1, run_max},
    {"min", {"x", "y = ...", "axis = none", "keep = false"}, 1, run_min},
    {"argmax", {"x", "axis"}, 2, run_argmax},
    {"argmin", {"x", "axis"}, 2, run_argmin},
    {"moments", {"x", "axis = none"}, 1, run_moments},
    {"ratio", {"x", "y"}, 2, run_ratio},
    {NULL, {NULL}, 0, NULL},
};

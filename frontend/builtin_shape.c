/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that move elements without computing any, and matmul by name. */
#include "frontend/resolve.h"

/* A list of dimensions as a type; one of them may be -1, then *open is its axis. */
static bool shape_argument(struct resolver *r, const struct value *v, enum dtype d, struct type *t,
                           int *open) {
  *t = (struct type){.dtype = (uint8_t)d};
  *open = -1;
  if (v->kind != VALUE_LIST) {
    report(r, v->at, "a shape is a list of dimensions, not %s", value_describe(r->arena, v));
    return false;
  }
  for (int i = 0; i < v->list.count; i++) {
    struct value item = v->list.items[i];
    item.at = v->at;
    if (item.kind == VALUE_INT && item.i == -1 && *open < 0) {
      *open = i;
      item = value_int(1);
    }
    if (!type_append(r, t, &item)) return false;
  }
  return type_check(r, t, v->at);
}

static struct value run_reshape(struct resolver *r, struct value *args, struct loc loc,
                                const struct role *role) {
  struct node *x = tensor_node(r, &args[0], "`x`");
  struct type t;
  int open;
  (void)role;
  if (!x || !shape_argument(r, &args[1], (enum dtype)x->type.dtype, &t, &open)) return value_error();
  int64_t have = type_count(&x->type), known = type_count(&t);
  if (open >= 0) {
    /* A dimension that both depend on cancels; one that only x depends on stays. */
    bool fits = known != 0 && have % known == 0 && !(known < 0 && have > 0);
    int64_t rest = !fits ? 0 : have / known;
    if (fits) t.dim[open] = rest;
    fits = fits && type_valid(&t) && type_count(&t) == have;
    known = fits ? have : known;
  }
  if (known == have) return value_tensor(r, build_reshape(r->g, x, &t), loc);
  const char *of = r->frame && is_library(r, loc) ? r->frame->function->def->name : "";
  if (strcmp(of, "squeeze") == 0) {
    report(r, loc, "`squeeze` leaves an axis of size 1 out, and this one of %s has another size",
           type_text(r->arena, &x->type));
    report_help(r, "an axis is made one number by `mean(x, axis = 1)`, `x[:, 0]`, or a layer");
    return value_error();
  }
  report(r, loc, "%s cannot become %s: they hold different numbers of elements",
         type_text(r->arena, &x->type), value_text(r->arena, &args[1]));
  report_value(r, &args[0]);
  if (type_is_symbolic(&x->type) && !type_is_symbolic(&t) && open < 0)
    report_help(r, "a batch has any number of rows, which is called `B`");
  return value_error();
}

static struct value run_transpose(struct resolver *r, struct value *args, struct loc loc,
                                  const struct role *role) {
  struct node *x = tensor_node(r, &args[0], "`x`");
  int64_t perm[MAX_RANK];
  int n = 0;
  (void)role;
  if (!x) return value_error();
  if (args[1].kind == VALUE_NONE) {
    n = x->type.rank;
    for (int i = 0; i < n; i++) perm[i] = i;
    if (n >= 2) perm[n - 1] = n - 2, perm[n - 2] = n - 1;
  } else if (!value_ints(r, &args[1], "`perm`", perm, &n)) {
    return value_error();
  }
  uint32_t seen = 0;
  for (int i = 0; i < n; i++)
    if (perm[i] >= 0 && perm[i] < n) seen |= 1u << perm[i];
  if (n != x->type.rank || seen != (1u << n) - 1) {
    report(r, loc, "`perm` must list each axis of %s once, not %s", type_text(r->arena, &x->type),
           value_text(r->arena, &args[1]));
    report_value(r, &args[0]);
    return value_error();
  }
  return value_tensor(r, build_transpose(r->g, x, perm), loc);
}

static struct value run_broadcast(struct resolver *r, struct value *args, struct loc loc,
                                  const struct role *role) {
  struct type t, both;
  int open;
  (void)role;
  struct node *x =
      args[0].kind == VALUE_TENSOR ? tensor_node(r, &args[0], "`x`") : value_node(r, &args[0], DT_F32);
  if (!x || !shape_argument(r, &args[1], (enum dtype)x->type.dtype, &t, &open)) return value_error();
  if (open >= 0 || !broadcast_shape(&x->type, &t, &both) || !shape_equal(&both, &t)) {
    report(r, loc, "%s does not broadcast to %s", type_text(r->arena, &x->type),
           value_text(r->arena, &args[1]));
    report_value(r, &args[0]);
    return value_error();
  }
  return value_tensor(r, build_broadcast_to(r->g, x, &t), loc);
}

/* The tensors of a list, all of one type but for `axis` (-1: not even there). */
static struct node **tensors_of(struct resolver *r, const struct value *v, int *n) {
  if (v->kind != VALUE_LIST || v->list.count == 0) {
    report(r, v->at, "a list of tensors is needed, not %s", value_describe(r->arena, v));
    return NULL;
  }
  *n = v->list.count;
  struct node **x = arena_new_array(r->arena, (size_t)*n, struct node *);
  for (int i = 0; i < *n; i++) {
    if ((x[i] = tensor_node(r, &v->list.items[i], "each item"))) continue;
    if (value_is_scalar(&v->list.items[i])) help_list(r, v);
    return NULL;
  }
  return x;
}

static enum dtype wider(enum dtype a, enum dtype b) {
  if (dtype_is_float(a) != dtype_is_float(b)) return dtype_is_float(a) ? a : b;
  if (a == DT_BOOL || b == DT_BOOL) return a == DT_BOOL ? b : a;
  return dtype_size(a) >= dtype_size(b) ? a : b;
}

static bool join(struct resolver *r, const struct value *list, struct node **x, int n, int axis,
                 struct loc loc) {
  for (int i = 0; i < n; i++) {
    struct type a = x[0]->type, b = x[i]->type;
    if (axis >= 0 && axis < a.rank && axis < b.rank) a.dim[axis] = b.dim[axis] = 1;
    if (type_equal(&a, &b)) continue;
    report(r, loc, "%s and %s do not fit together%s", type_text(r->arena, &x[0]->type),
           type_text(r->arena, &x[i]->type), axis >= 0 ? arena_printf(r->arena, " along axis %d", axis) : "");
    report_value(r, &list->list.items[0]);
    report_value(r, &list->list.items[i]);
    if (a.dtype != b.dtype)
      report_cast(r, &list->list.items[0], &list->list.items[i],
                  wider((enum dtype)a.dtype, (enum dtype)b.dtype));
    else if (axis >= 0 && a.rank != b.rank)
      report_help(r, "`expand(x, %d)` gives a tensor one more axis there", axis);
    return false;
  }
  return true;
}

static struct value run_concat(struct resolver *r, struct value *args, struct loc loc,
                               const struct role *role) {
  int n = 0, axis;
  (void)role;
  struct node **x = tensors_of(r, &args[0], &n);
  if (!x || !value_axis(r, &args[1], x[0]->type.rank, &axis) || !join(r, &args[0], x, n, axis, loc))
    return value_error();
  for (int i = 0; i < n; i++)
    if (x[i]->type.dim[axis] < 0) {
      report(r, loc, "batches cannot be joined along the batch axis: %s", type_text(r->arena, &x[i]->type));
      return value_error();
    }
  return value_tensor(r, build_concat(r->g, n, x, axis), loc);
}

static struct value run_stack(struct resolver *r, struct value *args, struct loc loc,
                              const struct role *role) {
  int n = 0, axis = 0;
  (void)role;
  struct node **x = tensors_of(r, &args[0], &n);
  if (!x || !join(r, &args[0], x, n, -1, loc)) return value_error();
  if (!value_axis(r, &args[1], x[0]->type.rank + 1, &axis)) return value_error();
  struct type t = x[0]->type;
  if (t.rank == MAX_RANK) {
    report(r, loc, "a tensor has at most %d axes", MAX_RANK);
    return value_error();
  }
  for (int i = t.rank++; i > axis; i--) t.dim[i] = t.dim[i - 1];
  t.dim[axis] = 1;
  for (int i = 0; i < n; i++) x[i] = build_reshape(r->g, x[i], &t);
  return value_tensor(r, build_concat(r->g, n, x, axis), loc);
}

/* slice(x, [0, 3], [-1, 2]): `size` elements from `begin`; -1 means all that are left */
static struct value run_slice(struct resolver *r, struct value *args, struct loc loc,
                              const struct role *role) {
  struct node *x = tensor_node(r, &args[0], "`x`");
  int64_t begin[MAX_RANK], size[MAX_RANK];
  int n, m;
  (void)role;
  if (!x || !value_ints(r, &args[1], "`begin`", begin, &n) || !value_ints(r, &args[2], "`size`", size, &m))
    return value_error();
  struct type t = x->type;
  bool ok = n == t.rank && m == t.rank;
  for (int i = 0; ok && i < n; i++) {
    int64_t dim = t.dim[i];
    if (dim < 0 || dim_is_whole(dim)) {
      ok = begin[i] == 0 && size[i] == -1;
      continue;
    }
    ok = begin[i] >= 0 && begin[i] <= dim && size[i] >= -1 && size[i] <= dim - begin[i];
    t.dim[i] = size[i] == -1 ? dim - begin[i] : size[i];
  }
  if (!ok) {
    report(r, loc, "%s has no slice of %s elements from %s", type_text(r->arena, &x->type),
           value_text(r->arena, &args[2]), value_text(r->arena, &args[1]));
    report_value(r, &args[0]);
    return value_error();
  }
  return value_tensor(r, build_slice(r->g, x, begin, &t), loc);
}

static struct value run_pad(struct resolver *r, struct value *args, struct loc loc, const struct role *role) {
  struct node *x = tensor_node(r, &args[0], "`x`");
  int64_t low[MAX_RANK], high[MAX_RANK];
  int n, m;
  (void)role;
  if (!x || !value_ints(r, &args[1], "`low`", low, &n) || !value_ints(r, &args[2], "`high`", high, &m))
    return value_error();
  struct type t = x->type;
  bool ok = n == t.rank && m == t.rank;
  for (int i = 0; ok && i < n; i++) {
    ok = low[i] >= 0 && high[i] >= 0 && low[i] <= MAX_ELEMENTS && high[i] <= MAX_ELEMENTS &&
         ((t.dim[i] >= 0 && !dim_is_whole(t.dim[i])) || (low[i] == 0 && high[i] == 0));
    if (ok) t.dim[i] += low[i] + high[i];
  }
  if (!ok) {
    report(r, loc, "%s cannot be padded by %s and %s", type_text(r->arena, &x->type),
           value_text(r->arena, &args[1]), value_text(r->arena, &args[2]));
    report_value(r, &args[0]);
    return value_error();
  }
  if (!type_check(r, &t, loc)) return value_error();
  struct value zero = value_int(0);
  struct node *value =
      value_node(r, args[3].kind == VALUE_NONE ? &zero : &args[3], (enum dtype)x->type.dtype);
  return value ? value_tensor(r, build_pad(r->g, x, low, high, value), loc) : value_error();
}

/* iota(i32[B, 10], axis = 1): 0, 1, 2, ... along an axis */
static struct value run_iota(struct resolver *r, struct value *args, struct loc loc,
                             const struct role *role) {
  struct type t;
  int axis = 0;
  (void)role;
  if (!value_as_type(r, &args[0], &t)) return value_error();
  if (args[1].kind != VALUE_NONE ? !value_axis(r, &args[1], t.rank, &axis) : t.rank == 0)
    return value_error();
  return value_tensor(r, build_iota(r->g, &t, axis), loc);
}

static struct value run_matmul(struct resolver *r, struct value *args, struct loc loc,
                               const struct role *role) {
  (void)role;
  if (args[0].kind != VALUE_TENSOR || args[1].kind != VALUE_TENSOR) {
    const struct value *v = args[0].kind != VALUE_TENSOR ? &args[0] : &args[1];
    report(r, v->at, "matmul works on tensors, not on %s", value_describe(r->arena, v));
    return value_error();
  }
  return matmul_in(r, args, &args[2], loc);
}

const struct builtin builtins_shape[] = {
    {"reshape", {"x", "shape"}, 2, run_reshape},
    {"transpose", {"x", "perm = none"}, 1, run_transpose},
    {"broadcast", {"x", "shape"}, 2, run_broadcast},
    {"concat", {"tensors", "axis"}, 2, run_concat},
    {"stack", {"tensors", "axis"}, 2, run_stack},
    {"slice", {"x", "begin", "size"}, 3, run_slice},
    {"pad", {"x", "low", "high", "value = 0"}, 3, run_pad},
    {"iota", {"type", "axis = 0"}, 1, run_iota},
    {"matmul", {"a", "b", "precision = none"}, 2, run_matmul},
    {NULL, {NULL}, 0, NULL},
};

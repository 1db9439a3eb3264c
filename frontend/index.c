/* SPDX-License-Identifier: Apache-2.0 */
/* What square brackets mean: a type behind an element type, an item of a list, a part of a tensor. */
#include "frontend/elsewhere.h"
#include "frontend/resolve.h"

#include <string.h>
#include <strings.h>

/* What elsewhere is None or -1. */
static const char rows_are_b[] = "the axis of the batch, of whatever size, is `B`";

/* Whether a dimension is what TensorFlow and Keras call the batch's; says so. */
static bool is_foreign_batch(struct resolver *r, const struct expr *e) {
  if (e->kind != EXPR_NAME || strcmp(e->name, "None") != 0 || scope_find(r, e->name)) return false;
  report(r, e->loc, "a dimension must be an integer or B, not None");
  report_help(r, "%s", rows_are_b);
  return true;
}

bool type_append(struct resolver *r, struct type *t, const struct value *v) {
  if (v->kind == VALUE_ERROR) return false;
  if (v->kind != VALUE_INT && v->kind != VALUE_BATCH) {
    report(r, v->at, "a dimension must be an integer or B, not %s", value_describe(r->arena, v));
    if (v->kind == VALUE_NONE) report_help(r, "%s", rows_are_b);
    return false;
  }
  if (v->kind == VALUE_INT && v->i < 0) {
    report(r, v->at, "a dimension cannot be negative: %lld", (long long)v->i);
    report_number(r, v);
    if (v->i == -1) report_help(r, "%s", rows_are_b);
    return false;
  }
  if (v->kind == VALUE_INT && v->i > MAX_ELEMENTS) {
    report(r, v->at, "an axis of %lld is too large: a tensor has at most %lld elements", (long long)v->i,
           (long long)MAX_ELEMENTS);
    return false;
  }
  if (t->rank == MAX_RANK) {
    report(r, v->at, "a tensor has at most %d axes", MAX_RANK);
    return false;
  }
  t->dim[t->rank++] = dim_of_value(v);
  return true;
}

bool type_check(struct resolver *r, const struct type *t, struct loc loc) {
  if (type_valid(t)) return true;
  int symbolic = 0;
  for (int i = 0; i < t->rank; i++) symbolic += t->dim[i] < 0;
  if (symbolic > 1)
    report(r, loc, "only one axis of %s may depend on B", type_text(r->arena, t));
  else
    report(r, loc, "%s is too large: a tensor has at most %lld elements", type_text(r->arena, t),
           (long long)MAX_ELEMENTS);
  return false;
}

static struct value type_value(struct resolver *r, const struct expr *e, enum dtype d) {
  struct type t = {.dtype = (uint8_t)d};
  for (const struct arg *a = e->items.first; a; a = a->next) {
    if (a->value->kind == EXPR_RANGE || (a->value->kind == EXPR_REST && !a->value->lhs)) {
      report(r, a->loc, "`%s` stands only in the types of parameters",
             a->value->kind == EXPR_REST ? "..." : ":");
      return value_error();
    }
    bool rest = a->value->kind == EXPR_REST;
    if (is_foreign_batch(r, a->value)) return value_error();
    struct value v = eval(r, rest ? a->value->lhs : a->value, NULL);
    if (rest && v.kind != VALUE_LIST && v.kind != VALUE_ERROR) {
      report(r, a->loc, "`...` spreads a list of dimensions, not %s", value_describe(r->arena, &v));
      return value_error();
    }
    if (v.kind == VALUE_LIST) {
      for (int i = 0; rest && i < v.list.count; i++) {
        v.list.items[i].at = a->loc;
        if (!type_append(r, &t, &v.list.items[i])) return value_error();
      }
      if (rest) continue;
    }
    if (!type_append(r, &t, &v)) return value_error();
  }
  if (!type_check(r, &t, e->loc)) return value_error();
  return (struct value){.kind = VALUE_TYPE, .type = arena_copy(r->arena, &t, sizeof t)};
}

bool value_as_type(struct resolver *r, const struct value *v, struct type *out) {
  if (v->kind == VALUE_TYPE) return *out = *v->type, true;
  if (v->kind == VALUE_DTYPE) return *out = type_scalar(v->dtype), true;
  if (v->kind != VALUE_ERROR)
    report(r, v->at, "a type is needed here, such as f32[B, 10], not %s", value_describe(r->arena, v));
  if (v->kind == VALUE_LIST) report_help(r, "write `f32%s`", value_text(r->arena, v));
  return false;
}

bool eval_type(struct resolver *r, const struct expr *e, struct type *out) {
  /* A misspelt element type deserves a better answer than an unknown name. */
  const struct expr *base = e->kind == EXPR_INDEX ? e->base : e;
  if (base->kind == EXPR_NAME && lookup(r, base->name, false).kind == VALUE_ERROR &&
      !scope_find(r, base->name)) {
    report(r, base->loc, "unknown type `%s`", base->name);
    const char *names[DT_COUNT];
    for (int d = 0; d < DT_COUNT; d++) names[d] = dtype_name((enum dtype)d);
    const char *instead = elsewhere_instead(base->name, strlen(base->name));
    if (instead)
      report_help(r, "%s", instead);
    else
      report_closest(r, base->name, names, DT_COUNT);
    return false;
  }
  enum dtype d;
  bool named = base->kind == EXPR_NAME && dtype_parse(base->name, strlen(base->name), &d);
  if (named && dtype_is_narrow(d) && !scope_find(r, base->name)) {
    report(r, base->loc, "%s is how numbers are stored, and no type that is computed with", base->name);
    report_help(r, "declare a variable as f32, and behind its first value say `storage(%s)`", base->name);
    return false;
  }
  const struct expr *callee = e->kind == EXPR_CALL ? e->base : NULL;
  if (callee && callee->kind == EXPR_NAME && dtype_parse(callee->name, strlen(callee->name), &d) &&
      !scope_find(r, callee->name)) {
    const char *dims = e->loc.source->text + callee->loc.end;
    size_t len = e->loc.end - callee->loc.end;
    report(r, e->loc, "the axes of a type stand in `[ ]`");
    if (len > 2 && len < 60) report_help(r, "write `%s[%.*s]`", callee->name, (int)len - 2, dims + 1);
    return false;
  }
  struct value v = eval(r, e, NULL);
  return value_as_type(r, &v, out);
}

/* The bound `e` of a range over an axis of `size`, or `otherwise`. Negative bounds count from the end. */
static bool bound(struct resolver *r, const struct expr *e, int64_t size, int64_t otherwise, int64_t *out) {
  if (!e) return *out = otherwise, true;
  if (!eval_int(r, e, "an index", out)) return false;
  if (*out < 0) *out += size;
  if (*out >= 0 && *out <= size) return true;
  const struct binding *axis = is_library(r, e->loc) ? map_get(&r->frame->scope->names, "axis") : NULL;
  if (axis && axis->value.kind == VALUE_INT)
    report(r, e->loc, "there is no axis %lld: the tensor has %lld", (long long)axis->value.i,
           (long long)size);
  else
    report(r, e->loc, "this index lies outside of 0..%lld", (long long)size);
  return false;
}

/* The step of a range, 1 where it has none. */
static bool step_of(struct resolver *r, const struct expr *range, int64_t *out) {
  *out = 1;
  if (!range->condition) return true;
  if (!eval_int(r, range->condition, "the step of an index", out)) return false;
  if (*out > 0) return true;
  report(r, range->condition->loc, "an index goes forwards, in steps of 1 at least, not of %lld",
         (long long)*out);
  report_help(r, "`reverse(x, axis)` has the elements in the other order");
  return false;
}

/* Each `step`th element of an axis of x: the axis is padded to whole steps, of which the first elements are taken. */
static struct node *take_each(struct resolver *r, struct node *x, int axis, int64_t step, struct loc loc) {
  struct type apart = x->type, firsts, whole = x->type;
  int64_t low[MAX_RANK] = {0}, high[MAX_RANK] = {0}, begin[MAX_RANK] = {0};
  int64_t have = x->type.dim[axis], count = have / step + (have % step != 0);
  if (step == 1) return x;
  whole.dim[axis] = count;
  if (count <= 1) return have == count ? x : build_slice(r->g, x, begin, &whole);
  if (x->type.rank == MAX_RANK) {
    report(r, loc, "a tensor of %d axes cannot be taken in steps", MAX_RANK);
    return NULL;
  }
  high[axis] = count * step - have;
  if (high[axis]) x = build_pad(r->g, x, low, high, build_scalar(r->g, (enum dtype)x->type.dtype, 0));
  for (int i = apart.rank++; i > axis + 1; i--) apart.dim[i] = apart.dim[i - 1];
  apart.dim[axis] = count;
  apart.dim[axis + 1] = step;
  firsts = apart;
  firsts.dim[axis + 1] = 1;
  return build_reshape(r->g, build_slice(r->g, build_reshape(r->g, x, &apart), begin, &firsts), &whole);
}

static struct value list_part(struct resolver *r, const struct expr *e, const struct value *list) {
  if (e->items.count != 1) {
    report(r, e->loc, "a list has one index");
    return value_error();
  }
  const struct expr *q = e->items.first->value;
  int64_t lo, hi, step, n = list->list.count;
  if (q->kind == EXPR_RANGE) {
    if (!bound(r, q->lhs, n, 0, &lo) || !bound(r, q->rhs, n, n, &hi) || !step_of(r, q, &step))
      return value_error();
    struct value v = {.kind = VALUE_LIST};
    v.list.items = list->list.items + lo;
    v.list.count = hi > lo ? (int)(hi - lo) : 0;
    if (step == 1) return v;
    struct value *each = arena_new_array(r->arena, (size_t)v.list.count, struct value);
    int count = 0;
    for (int64_t i = 0; i < v.list.count; i += step) each[count++] = v.list.items[i];
    v.list.items = each;
    v.list.count = count;
    return v;
  }
  if (!eval_int(r, q, "an index", &lo)) {
    report_help(
        r,
        "a list of numbers is a tensor by `cast([1.0, 2.0], f32)`, and `gather(x, ids)` looks up its rows");
    return value_error();
  }
  if (lo < 0) lo += n;
  if (lo >= 0 && lo < n) return list->list.items[lo];
  report(r, q->loc, "this index lies outside of a list of %lld", (long long)n);
  return value_error();
}

/* What makes an axis in other languages: `x[:, None]`, np.newaxis. */
static bool is_new_axis(struct resolver *r, const struct expr *q) {
  const char *name = q->kind == EXPR_NAME || q->kind == EXPR_MEMBER ? q->name : "";
  if (q->kind == EXPR_NAME && scope_find(r, name)) return false;
  return strcmp(name, "newaxis") == 0 || (q->kind == EXPR_NAME && strcasecmp(name, "none") == 0);
}

static bool report_new_axis(struct resolver *r, const struct expr *e) {
  const struct arg *a = e->items.first, *new = NULL;
  int axis = 0;
  bool plain = true; /* besides it are whole axes alone */
  for (; a; a = a->next) {
    const struct expr *q = a->value;
    bool all = q->kind == EXPR_RANGE && !q->lhs && !q->rhs && !q->condition, found = is_new_axis(r, q);
    plain = plain && (all || (q->kind == EXPR_REST && !new) || (found && !new));
    if (found && !new) new = a;
    if (q->kind == EXPR_REST) axis = -1;
    if (!new &&axis >= 0) axis++;
  }
  if (!new) return false;
  const char *name = e->base->kind == EXPR_NAME ? e->base->name : "x";
  report(r, new->loc, "an index makes no axis");
  if (plain && (axis >= 0 || !new->next))
    report_help(r, "write `expand(%s, %d)`", name, axis);
  else
    report_help(r, "`expand(%s, axis)` puts one of size 1 in front of axis `axis`", name);
  return true;
}

/* A part of x: of each axis so many elements of those from `begin`, every `step`th of them. */
struct tensor_cut {
  struct node *x;
  struct type part,
      kept; /* what is cut out; and that with its steps taken, without the axes of single places */
  int64_t begin[MAX_RANK], step[MAX_RANK];
  int axis; /* the next one */
};

static void keep_axes(struct tensor_cut *c, int count) {
  for (; count > 0; count--) c->kept.dim[c->kept.rank++] = c->part.dim[c->axis++];
}

/* x[lo:hi] */
static bool cut_range(struct resolver *r, const struct expr *e, struct tensor_cut *c) {
  int64_t lo, hi, size = c->part.dim[c->axis], *step = &c->step[c->axis];
  if (!bound(r, e->lhs, size, 0, &lo) || !bound(r, e->rhs, size, size, &hi) || !step_of(r, e, step))
    return false;
  int64_t count = hi > lo ? hi - lo : 0;
  c->begin[c->axis] = lo;
  c->part.dim[c->axis++] = count;
  c->kept.dim[c->kept.rank++] = count / *step + (count % *step != 0);
  return true;
}

/* x[i] */
static bool cut_place(struct resolver *r, const struct value *base, const struct expr *e,
                      struct tensor_cut *c) {
  int64_t at, size = c->part.dim[c->axis];
  if (!eval_int(r, e, "an index of a tensor", &at)) {
    report_help(r, "to look up rows by a tensor of numbers write `gather(x, ids)`");
    return false;
  }
  if (at < 0) at += size;
  if (at < 0 || at >= size) {
    report(r, e->loc, "this index lies outside of axis %d of %s", c->axis, type_text(r->arena, &c->x->type));
    report_value(r, base);
    return false;
  }
  c->begin[c->axis] = at;
  c->part.dim[c->axis++] = 1;
  return true;
}

static bool cut_axis(struct resolver *r, const struct value *base, const struct expr *e,
                     struct tensor_cut *c) {
  int64_t size = c->part.dim[c->axis];
  bool all = e->kind == EXPR_RANGE && !e->lhs && !e->rhs && !e->condition;
  if (all) {
    keep_axes(c, 1);
    return true;
  }
  if (size < 0 || dim_is_whole(size)) {
    report(r, e->loc, "the batch axis cannot be cut: its rows lie on different towers");
    report_value(r, base);
    if (c->part.rank > 1 && c->axis == 0)
      report_help(r, "the batch is the first axis: `x[:, i]` is what each row has at place i");
    return false;
  }
  return e->kind == EXPR_RANGE ? cut_range(r, e, c) : cut_place(r, base, e, c);
}

/* All indices of e, which are of so many axes; `...` is for the others. */
static bool cut_axes(struct resolver *r, const struct value *base, const struct expr *e, int given,
                     struct tensor_cut *c) {
  bool rested = false;
  for (const struct arg *a = e->items.first; a; a = a->next) {
    if (a->value->kind != EXPR_REST) {
      if (!cut_axis(r, base, a->value, c)) return false;
      continue;
    }
    if (rested || a->value->lhs) {
      report(r, a->value->loc, "an index has at most one plain `...`");
      return false;
    }
    rested = true;
    keep_axes(c, c->part.rank - given);
  }
  keep_axes(c, c->part.rank - c->axis);
  return true;
}

static struct value tensor_part(struct resolver *r, const struct expr *e, struct value *base) {
  struct node *x = tensor_node(r, base, "this");
  if (!x || report_new_axis(r, e)) return value_error();
  int given = 0, rank = x->type.rank;
  for (const struct arg *a = e->items.first; a; a = a->next) given += a->value->kind != EXPR_REST;
  if (given > rank) {
    report(r, e->loc, "%d indices are too many for %s", given, type_text(r->arena, &x->type));
    report_value(r, base);
    return value_error();
  }
  struct tensor_cut c = {.x = x, .part = x->type, .kept = {.dtype = x->type.dtype}};
  for (int i = 0; i < MAX_RANK; i++) c.step[i] = 1;
  if (!cut_axes(r, base, e, given, &c)) return value_error();
  build_here(r, e->loc);
  struct node *y = shape_equal(&c.part, &x->type) ? x : build_slice(r->g, x, c.begin, &c.part);
  for (int i = 0; i < rank && y; i++) y = take_each(r, y, i, c.step[i], e->loc);
  if (!y) return value_error();
  return value_tensor(r, shape_equal(&y->type, &c.kept) ? y : build_reshape(r->g, y, &c.kept), e->loc);
}

/* What a layer has bound in a trip of a loop: `critic.part[0].kernel`. */
static struct value layer_part(struct resolver *r, const struct expr *e, const struct value *base) {
  const struct arg *a = e->items.first;
  int64_t trip;
  if (!a || a->next || a->value->kind == EXPR_RANGE || a->value->kind == EXPR_REST) {
    report(r, e->loc, "a layer has parts by the number of a trip, as in `%s[0]`", base->layer->owner);
    return value_error();
  }
  if (!eval_int(r, a->value, "the number of a trip", &trip)) return value_error();
  return layer_member(r, base->layer, arena_printf(r->arena, "%lld", (long long)trip), e->loc);
}

struct value eval_index(struct resolver *r, const struct expr *e, const struct role *role) {
  struct role inner = {role, "base", 0};
  struct value base = eval(r, e->base, &inner);
  switch (base.kind) {
  case VALUE_ERROR: return base;
  case VALUE_DTYPE: return type_value(r, e, base.dtype);
  case VALUE_LIST: return list_part(r, e, &base);
  case VALUE_TENSOR: return tensor_part(r, e, &base);
  case VALUE_LAYER: return layer_part(r, e, &base);
  case VALUE_NONE:
  case VALUE_INT:
  case VALUE_BATCH:
  case VALUE_FLOAT:
  case VALUE_BOOL:
  case VALUE_STRING:
  case VALUE_TYPE:
  case VALUE_FUNCTION:
  case VALUE_BUILTIN:
  case VALUE_OP:
  case VALUE_MODULE: break;
  }
  report(r, e->loc, "%s has no parts", value_describe(r->arena, &base));
  return value_error();
}

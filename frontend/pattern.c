/* SPDX-License-Identifier: Apache-2.0 */
/* Types of parameters: they check an argument and bind what they name.
 *
 *   x : f32[..., K]    f32 of rank 1 or more; K is its last dimension
 *   x : T[...S, H, W]  any element type T; S is the list of leading dimensions
 *   n : int            a compile-time integer; so with float, bool, string, list
 *   p : fraction       a float, at least 0 and less than 1
 *   n : several        an integer, at least 2
 *   n : positive       a number, greater than 0; so with nonnegative, at least 0; a scalar tensor is not looked at
 *   l : ascending      a list of numbers, each greater than the one before
 *   i : integers       a tensor of integers or bool; what is no tensor the body looks at, but for floats
 *   l : list[n]        a list of so many items; a name binds their number
 *   s : "a" or "b"     one of these strings
 * `none` is taken where it is the default. */
#include "frontend/resolve.h"

#include <math.h>
#include <string.h>

/* A compile-time value; of a number with an end what it is, which is said where another is given. */
struct compile_time {
  const char *name;
  enum value_kind kind;
  const char *limit;
  double least, below;
};

static const struct compile_time *compile_time(const char *name) {
  static const struct compile_time types[] = {
      {.name = "int", .kind = VALUE_INT},
      {.name = "float", .kind = VALUE_FLOAT},
      {"fraction", VALUE_FLOAT, "it is at least 0 and less than 1", 0, 1},
      {"several", VALUE_INT, "it is at least 2", 2, INFINITY},
      {.name = "string", .kind = VALUE_STRING},
      {.name = "list", .kind = VALUE_LIST}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) return &types[i];
  return NULL;
}

/* Numbers with an end: what they are, and whether this is one. NULL: no such type. */
static const char *limit_of(const char *name, double x, bool *good) {
  if (strcmp(name, "positive") == 0) return *good = x > 0, "it is greater than 0";
  if (strcmp(name, "nonnegative") == 0) return *good = x >= 0, "it is at least 0";
  return NULL;
}

static bool is_number(const struct value *v) { return v->kind == VALUE_INT || v->kind == VALUE_FLOAT; }

static double number_of(const struct value *v) { return v->kind == VALUE_INT ? (double)v->i : v->f; }

static bool is_ascending(const struct value *v) {
  if (v->kind != VALUE_LIST) return false;
  for (int i = 0; i < v->list.count; i++) {
    const struct value *item = &v->list.items[i];
    if (!is_number(item) || (i && !(number_of(item) > number_of(item - 1)))) return false;
  }
  return true;
}

static bool has_floats(const struct value *v) {
  if (v->kind == VALUE_TENSOR)
    return v->tensor.node->type.dtype != DT_BOOL && !dtype_is_int((enum dtype)v->tensor.node->type.dtype);
  for (int i = 0; v->kind == VALUE_LIST && i < v->list.count; i++)
    if (has_floats(&v->list.items[i])) return true;
  return v->kind == VALUE_FLOAT;
}

static void mismatch(struct resolver *r, const struct param *p, const struct value *v, const char *why) {
  struct str want = str_make(r->arena);
  ast_print_expr(&want, p->type);
  const struct frame *f = r->frame;
  r->frame = f->caller; /* the fault is the caller's */
  report(r, v->at.source ? v->at : f->call, "`%s` of `%s` must be %s, not %s%s%s", p->name,
         f->function->def->name, want.data, value_describe(r->arena, v), *why ? ": " : "", why);
  report_value(r, v);
  report_note(r, p->type->loc, "the parameter is declared here");
  r->frame = (struct frame *)(uintptr_t)f;
}

/* A name that the signature itself has bound. */
static struct binding *own_binding(struct resolver *r, const char *name) {
  return map_get(&r->frame->scope->names, name);
}

static bool match_dim(struct resolver *r, const struct param *p, const struct expr *e, int64_t dim,
                      const struct value *v) {
  struct value want, have = value_dim(dim);
  if (e->kind == EXPR_NAME && strcmp(e->name, "B") != 0) {
    struct binding *b = own_binding(r, e->name);
    if (!b) {
      bind(r, e->name, e->loc, have, true, false);
      return true;
    }
    want = b->value;
  } else {
    want = eval(r, e, NULL);
  }
  if (want.kind == VALUE_ERROR || value_equal(&want, &have)) return want.kind != VALUE_ERROR;
  struct str name = str_make(r->arena);
  ast_print_expr(&name, e);
  const char *is = value_text(r->arena, &want);
  mismatch(r, p, v,
           strcmp(is, name.data) == 0
               ? arena_printf(r->arena, "%s is not %s", value_text(r->arena, &have), is)
               : arena_printf(r->arena, "%s is %s here", name.data, is));
  return false;
}

static bool match_shape(struct resolver *r, const struct param *p, const struct expr *e, const struct type *t,
                        const struct value *v) {
  int fixed = 0, axis = 0;
  const struct expr *rest = NULL;
  for (const struct arg *a = e->items.first; a; a = a->next) {
    if (a->value->kind != EXPR_REST)
      fixed++;
    else
      rest = a->value;
  }
  if (t->rank < fixed || (!rest && t->rank != fixed)) {
    mismatch(r, p, v,
             arena_printf(r->arena, "it needs %s%d %s", rest ? "at least " : "", fixed,
                          fixed == 1 ? "axis" : "axes"));
    return false;
  }
  for (const struct arg *a = e->items.first; a; a = a->next) {
    if (a->value->kind != EXPR_REST) {
      if (!match_dim(r, p, a->value, t->dim[axis++], v)) return false;
      continue;
    }
    if (a->value != rest) {
      report(r, a->loc, "the type of a parameter has at most one `...`");
      return false;
    }
    struct value list = {.kind = VALUE_LIST};
    list.list.count = t->rank - fixed;
    list.list.items = arena_new_array(r->arena, (size_t)list.list.count, struct value);
    for (int i = 0; i < list.list.count; i++) list.list.items[i] = value_dim(t->dim[axis++]);
    if (!rest->lhs) continue;
    if (rest->lhs->kind != EXPR_NAME) {
      report(r, rest->loc, "`...` of a parameter takes a name");
      return false;
    }
    struct binding *b = own_binding(r, rest->lhs->name);
    if (!b) {
      bind(r, rest->lhs->name, rest->loc, list, true, false);
    } else if (!value_equal(&b->value, &list)) {
      mismatch(r, p, v,
               arena_printf(r->arena, "%s is %s here", rest->lhs->name, value_text(r->arena, &b->value)));
      return false;
    }
  }
  return true;
}

static bool is_words(const struct expr *e) {
  if (e->kind == EXPR_BINARY) return e->op == OPERATOR_OR && is_words(e->lhs) && is_words(e->rhs);
  return e->kind == EXPR_STRING;
}

static bool is_one_of(const struct expr *words, const struct value *v) {
  if (words->kind == EXPR_BINARY) return is_one_of(words->lhs, v) || is_one_of(words->rhs, v);
  return v->kind == VALUE_STRING && strcmp(v->string, words->name) == 0;
}

bool none_fits(struct resolver *r, const struct param *p, const struct value *v) {
  const struct expr *otherwise = p->value;
  const struct def *d = r->frame->function->def;
  if (otherwise && otherwise->kind == EXPR_NAME && strcmp(otherwise->name, "none") == 0) return true;
  if (!p->type && (!otherwise || !is_library(r, d->loc))) return true; /* the function looks at it itself */
  struct str text = str_make(r->arena);
  if (otherwise) ast_print_expr(&text, otherwise);
  const char *why = otherwise ? arena_printf(r->arena, "its default is %s", text.data) : "it has no default";
  if (p->type) {
    mismatch(r, p, v, why);
  } else {
    const struct frame *f = r->frame;
    r->frame = f->caller; /* the fault is the caller's */
    report(r, v->at, "`%s` of `%s` cannot be none: %s", p->name, d->name, why);
    r->frame = (struct frame *)(uintptr_t)f;
  }
  if (otherwise) report_help(r, "leave `%s` out; none is taken where it is the default", p->name);
  return false;
}

/* T[N] */
static bool is_one_a_row(const struct expr *e) {
  return e->kind == EXPR_INDEX && e->items.count == 1 && e->items.first->value->kind == EXPR_NAME;
}

bool match_param(struct resolver *r, const struct param *p, struct value *v) {
  const struct expr *e = p->type, *base = e->kind == EXPR_INDEX ? e->base : e;
  if (is_words(e)) {
    if (is_one_of(e, v)) return true;
    mismatch(r, p, v, "");
    return false;
  }
  if (base->kind != EXPR_NAME) {
    report(r, e->loc, "the type of a parameter begins with a name");
    return false;
  }
  bool good;
  const char *limit = e->kind == EXPR_NAME ? limit_of(e->name, is_number(v) ? number_of(v) : 0, &good) : NULL;
  if (limit) {
    if (is_number(v) ? good : v->kind == VALUE_TENSOR && v->tensor.node->type.rank == 0) return true;
    mismatch(r, p, v, limit);
    return false;
  }
  if (e->kind == EXPR_NAME && strcmp(e->name, "ascending") == 0) {
    if (is_ascending(v)) return true;
    mismatch(r, p, v, "it is a list of numbers, each greater than the one before");
    return false;
  }
  if (e->kind == EXPR_NAME && strcmp(e->name, "integers") == 0) {
    if (!has_floats(v)) return true;
    mismatch(r, p, v, "");
    report_help(r, "write `cast(%s, i32)`", v->name ? v->name : "x");
    return false;
  }
  if (e->kind == EXPR_INDEX && strcmp(base->name, "list") == 0 && e->items.count == 1 &&
      e->items.first->value->kind != EXPR_REST) {
    if (v->kind == VALUE_LIST) return match_dim(r, p, e->items.first->value, v->list.count, v);
    mismatch(r, p, v, "");
    return false;
  }
  const struct compile_time *fixed = e->kind == EXPR_NAME ? compile_time(e->name) : NULL;
  if (fixed) {
    struct loc at = v->at;
    if (fixed->kind == VALUE_FLOAT && v->kind == VALUE_INT) *v = value_float((double)v->i), v->at = at;
    bool inside =
        !fixed->limit || (is_number(v) && number_of(v) >= fixed->least && number_of(v) < fixed->below);
    if (v->kind == fixed->kind && inside) return true;
    mismatch(r, p, v, fixed->limit ? fixed->limit : "");
    return false;
  }
  enum dtype d;
  bool known = dtype_parse(base->name, strlen(base->name), &d);
  if (known && d == DT_BOOL && e->kind == EXPR_NAME && v->kind == VALUE_BOOL) return true;
  if (known && e->kind == EXPR_NAME && v->kind != VALUE_TENSOR && value_is_scalar(v)) {
    struct node *n = value_node(r, v, d);
    *v = value_tensor(r, n, v->at);
    return n != NULL;
  }
  struct binding *b = known ? NULL : own_binding(r, base->name);
  if (v->kind != VALUE_TENSOR) {
    const struct def *of = r->frame->function->def;
    mismatch(r, p, v, "");
    if (value_is_scalar(v) && of->kind == DEF_LAYER && p == of->params.first)
      report_help(r, "the input comes first; `%s.new(...)` makes a layer that is called later", of->name);
    else if (value_is_scalar(v) && b && b->value.kind == VALUE_DTYPE)
      report_help(r, "write `broadcast(cast(%s, %s), shape(x))`", value_text(r->arena, v),
                  dtype_name(b->value.dtype));
    else if (v->kind == VALUE_LIST && v->list.count && v->list.items[0].kind == VALUE_TENSOR)
      report_help(
          r, "`stack(list, axis = 1)` makes one tensor of a list, `concat(list, axis)` joins along an axis");
    else if (is_one_a_row(e) && (value_is_scalar(v) || v->kind == VALUE_LIST))
      report_help(r, "it has one for each row, as `input %s : i32[B]` has", p->name);
    return false;
  }
  const struct type *t = &v->tensor.node->type;
  if (!known && !b) {
    bind(r, base->name, base->loc, value_dtype((enum dtype)t->dtype), true, false);
    d = t->dtype;
  } else if (b) {
    d = b->value.kind == VALUE_DTYPE ? b->value.dtype : DT_COUNT;
  }
  if (t->dtype != d) {
    mismatch(r, p, v,
             b && d < DT_COUNT ? arena_printf(r->arena, "%s is %s here", base->name, dtype_name(d)) : "");
    if (d < DT_COUNT) report_help(r, "write `cast(%s, %s)`", v->name ? v->name : "x", dtype_name(d));
    return false;
  }
  if (e->kind == EXPR_INDEX) return match_shape(r, p, e, t, v);
  if (t->rank == 0) return true;
  mismatch(r, p, v, "it needs a scalar");
  return false;
}

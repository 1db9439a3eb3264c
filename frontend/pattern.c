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

/* Numbers, of any kind, that have an end. */
struct limit {
  const char *name, *text;
  bool above_zero; /* not 0 itself */
};

/* NULL: no such type. */
static const struct limit *limit_of(const char *name) {
  static const struct limit types[] = {{"positive", "it is greater than 0", true},
                                       {"nonnegative", "it is at least 0", false}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) return &types[i];
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
    if (!rest && t->rank == fixed - 1 && t->rank > 1) {
      struct type wider = *t;
      wider.dim[wider.rank++] = 1;
      report_help(r, "`expand(%s, %d)` is %s", v->name && v->decl.source ? v->name : "x", t->rank,
                  type_text(r->arena, &wider));
    }
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

/* `"a" or "b"` */
static bool match_words(struct resolver *r, const struct param *p, const struct value *v) {
  if (is_one_of(p->type, v)) return true;
  mismatch(r, p, v, "");
  return false;
}

/* `list[n]` */
static bool is_list_of(const struct expr *e) {
  return e->kind == EXPR_INDEX && strcmp(e->base->name, "list") == 0 && e->items.count == 1 &&
         e->items.first->value->kind != EXPR_REST;
}

static bool match_list(struct resolver *r, const struct param *p, const struct value *v) {
  if (v->kind == VALUE_LIST) return match_dim(r, p, p->type->items.first->value, v->list.count, v);
  mismatch(r, p, v, "");
  return false;
}

/* Of a scalar tensor the number is not known now. */
static bool match_limit(struct resolver *r, const struct param *p, const struct limit *limit,
                        const struct value *v) {
  double x = is_number(v) ? number_of(v) : 0;
  bool good = limit->above_zero ? x > 0 : x >= 0;
  if (is_number(v) ? good : v->kind == VALUE_TENSOR && v->tensor.node->type.rank == 0) return true;
  mismatch(r, p, v, limit->text);
  return false;
}

static bool match_ascending(struct resolver *r, const struct param *p, const struct value *v) {
  if (is_ascending(v)) return true;
  mismatch(r, p, v, "it is a list of numbers, each greater than the one before");
  return false;
}

static bool match_integers(struct resolver *r, const struct param *p, const struct value *v) {
  if (!has_floats(v)) return true;
  mismatch(r, p, v, "");
  report_help(r, "write `cast(%s, i32)`", v->name ? v->name : "x");
  return false;
}

/* An integer becomes a float where that is wanted. */
static bool match_compile_time(struct resolver *r, const struct param *p, const struct compile_time *want,
                               struct value *v) {
  struct loc at = v->at;
  if (want->kind == VALUE_FLOAT && v->kind == VALUE_INT) *v = value_float((double)v->i), v->at = at;
  bool inside = !want->limit || (is_number(v) && number_of(v) >= want->least && number_of(v) < want->below);
  if (v->kind == want->kind && inside) return true;
  mismatch(r, p, v, want->limit ? want->limit : "");
  return false;
}

/* No tensor, where `of` binds the element type or is NULL: how what was given becomes one. */
static void help_no_tensor(struct resolver *r, const struct param *p, const struct binding *of,
                           const struct value *v) {
  const struct def *d = r->frame->function->def;
  if (value_is_scalar(v) && d->kind == DEF_LAYER && p == d->params.first)
    report_help(r, "the input comes first; `%s.new(...)` makes a layer that is called later", d->name);
  else if (value_is_scalar(v) && of && of->value.kind == VALUE_DTYPE)
    report_help(r, "write `broadcast(cast(%s, %s), shape(x))`", value_text(r->arena, v),
                dtype_name(of->value.dtype));
  else if (v->kind == VALUE_LIST && v->list.count && v->list.items[0].kind == VALUE_TENSOR)
    report_help(
        r, "`stack(list, axis = 1)` makes one tensor of a list, `concat(list, axis)` joins along an axis");
  else if (is_one_a_row(p->type) && (value_is_scalar(v) || v->kind == VALUE_LIST))
    report_help(r, "it has one for each row, as `input %s : i32[B]` has", p->name);
}

/* `T` of `T[...]`: any element type, which is that of all parameters where it stands. */
static bool match_any_dtype(struct resolver *r, const struct param *p, const struct expr *name,
                            const struct value *v) {
  struct binding *b = own_binding(r, name->name);
  enum dtype has = (enum dtype)v->tensor.node->type.dtype;
  if (!b) {
    bind(r, name->name, name->loc, value_dtype(has), true, false);
    return true;
  }
  bool bound = b->value.kind == VALUE_DTYPE;
  if (bound && b->value.dtype == has) return true;
  mismatch(r, p, v,
           bound ? arena_printf(r->arena, "%s is %s here", name->name, dtype_name(b->value.dtype)) : "");
  if (bound) report_help(r, "write `cast(%s, %s)`", v->name ? v->name : "x", dtype_name(b->value.dtype));
  return false;
}

static bool match_dtype(struct resolver *r, const struct param *p, enum dtype want, const struct value *v) {
  if (v->tensor.node->type.dtype == want) return true;
  mismatch(r, p, v, "");
  report_help(r, "write `cast(%s, %s)`", v->name ? v->name : "x", dtype_name(want));
  return false;
}

/* `f32`, `f32[..., K]`, `T[N]` */
static bool match_tensor(struct resolver *r, const struct param *p, const struct expr *base,
                         struct value *v) {
  const struct expr *e = p->type;
  enum dtype d;
  bool known = dtype_parse(base->name, strlen(base->name), &d), scalar = e->kind == EXPR_NAME;
  if (known && scalar && d == DT_BOOL && v->kind == VALUE_BOOL) return true;
  if (known && scalar && value_is_scalar(v)) {
    struct node *n = value_node(r, v, d);
    *v = value_tensor(r, n, v->at);
    return n != NULL;
  }
  if (v->kind != VALUE_TENSOR) {
    const struct binding *of = known ? NULL : own_binding(r, base->name);
    mismatch(r, p, v, "");
    help_no_tensor(r, p, of, v);
    return false;
  }
  if (known ? !match_dtype(r, p, d, v) : !match_any_dtype(r, p, base, v)) return false;
  const struct type *t = &v->tensor.node->type;
  if (!scalar) return match_shape(r, p, e, t, v);
  if (t->rank == 0) return true;
  mismatch(r, p, v, "it needs a scalar");
  return false;
}

bool match_param(struct resolver *r, const struct param *p, struct value *v) {
  const struct expr *e = p->type, *base = e->kind == EXPR_INDEX ? e->base : e;
  if (is_words(e)) return match_words(r, p, v);
  if (base->kind != EXPR_NAME) {
    report(r, e->loc, "the type of a parameter begins with a name");
    return false;
  }
  if (is_list_of(e)) return match_list(r, p, v);
  if (e->kind == EXPR_NAME) {
    const struct limit *limit = limit_of(e->name);
    const struct compile_time *fixed = compile_time(e->name);
    if (limit) return match_limit(r, p, limit, v);
    if (strcmp(e->name, "ascending") == 0) return match_ascending(r, p, v);
    if (strcmp(e->name, "integers") == 0) return match_integers(r, p, v);
    if (fixed) return match_compile_time(r, p, fixed, v);
  }
  return match_tensor(r, p, base, v);
}

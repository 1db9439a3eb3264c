/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that elsewhere make what is called with its input later: `nn.dense(64)(x)`, `activation = leaky_relu(0.2)`.
 * Here a call has its input, which comes first. */
#include "frontend/resolve.h"

#include <string.h>

enum { MOST_DEEP = 8, MOST_LETTERS = 60 };

/* What is certainly no tensor. */
static bool is_number(struct resolver *r, const struct expr *e, int deep) {
  const struct binding *b;
  if (deep > MOST_DEEP) return false;
  switch (e->kind) {
  case EXPR_INT:
  case EXPR_FLOAT:
  case EXPR_BOOL:
  case EXPR_STRING: return true;
  case EXPR_NAME:
    b = scope_find(r, e->name);
    return b && (value_is_scalar(&b->value) || b->value.kind == VALUE_STRING || b->value.kind == VALUE_LIST);
  case EXPR_UNARY: return is_number(r, e->lhs, deep + 1);
  case EXPR_BINARY: return is_number(r, e->lhs, deep + 1) && is_number(r, e->rhs, deep + 1);
  case EXPR_LIST:
    for (const struct arg *a = e->items.first; a; a = a->next)
      if (!is_number(r, a->value, deep + 1)) return false;
    return true;
  case EXPR_MEMBER:
  case EXPR_CONDITIONAL:
  case EXPR_CALL:
  case EXPR_INDEX:
  case EXPR_RANGE:
  case EXPR_REST: break;
  }
  return false;
}

/* What is called, if that can be told without a word; else VALUE_ERROR. */
static struct value callee_of(struct resolver *r, const struct expr *call) {
  const struct expr *e = call->base;
  if (e->kind == EXPR_NAME) return lookup(r, e->name, true);
  if (e->kind != EXPR_MEMBER || e->base->kind != EXPR_NAME) return value_error();
  struct value base = lookup(r, e->base->name, false);
  const struct value *v = base.kind == VALUE_MODULE ? module_find(r, base.module, e->name) : NULL;
  return v ? *v : value_error();
}

/* The parameter that is the input of a layer or a function. NULL: there is none, or the
 * call may well make a function. */
static const char *input_of(struct resolver *r, const struct expr *call, const struct value *callee) {
  const char *first = NULL;
  if (callee->kind == VALUE_FUNCTION) {
    const struct def *d = callee->function->def;
    int required = 0, i = 0;
    for (const struct param *p = d->params.first; p; p = p->next, i++)
      if (!p->value) required = i + 1;
    if (d->params.first) first = d->params.first->name;
    bool library = is_library(r, d->loc);
    if (d->kind == DEF_LAYER) return library || call->items.count < required ? first : NULL;
    if (d->kind != DEF_FUNCTION || !library) return NULL;
  } else if (callee->kind == VALUE_BUILTIN) {
    first = callee->builtin->params[0];
  } else if (callee->kind == VALUE_OP) {
    const char *params[MAX_GIVEN];
    int required;
    if (op_params(callee->op, params, &required) > 0) first = params[0];
  }
  return first && strcmp(first, "x") == 0 ? first : NULL;
}

static bool lacks_input(struct resolver *r, const struct expr *call, const struct value *callee) {
  const char *input = input_of(r, call, callee);
  if (!input) return false;
  const struct arg *first = call->items.first;
  for (const struct arg *a = first; a; a = a->next)
    if (a->name && strcmp(a->name, input) == 0) return false;
  return !first || first->name || is_number(r, first->value, 0);
}

/* As it stands in the source, which may be too much to say again: NULL. */
static const char *source_of(struct resolver *r, struct loc loc) {
  const char *text = loc.source->text + loc.begin;
  size_t n = loc.end - loc.begin;
  return n > MOST_LETTERS || memchr(text, '\n', n) ? NULL : arena_strndup(r->arena, text, n);
}

/* `nn.dense(x, 64)` of nn.dense(64) and x. */
static const char *with_input(struct resolver *r, const struct expr *call, const char *input) {
  struct str s = str_make(r->arena);
  const char *name = source_of(r, call->base->loc);
  str_printf(&s, "%s(%s", name ? name : "layer", input);
  for (const struct arg *a = call->items.first; a; a = a->next) {
    const char *text = source_of(r, a->loc);
    str_printf(&s, ", %s", text ? text : "...");
  }
  str_putc(&s, ')');
  return s.data;
}

static bool is_layer(const struct value *callee) {
  return callee->kind == VALUE_FUNCTION && callee->function->def->kind == DEF_LAYER;
}

/* `nn.dense.new(64)` */
static const char *maker_of(struct resolver *r, const struct expr *call) {
  const char *name = source_of(r, call->base->loc);
  const char *args = source_of(r, (struct loc){call->loc.source, call->base->loc.end, call->loc.end});
  return arena_printf(r->arena, "%s.new%s", name ? name : "layer", args ? args : "(...)");
}

bool report_curried(struct resolver *r, const struct expr *e) {
  const struct expr *call = e->base;
  if (call->kind != EXPR_CALL || is_maker(call->base)) return false;
  struct value callee = callee_of(r, call);
  if (!lacks_input(r, call, &callee)) return false;
  const struct arg *first = e->items.first;
  const char *name = source_of(r, call->base->loc);
  const char *input = first && !first->name && !first->next ? source_of(r, first->loc) : NULL;
  report(r, e->loc, "a call of `%s` gives a tensor, which cannot be called", name ? name : "this");
  const char *whole = with_input(r, call, input ? input : "x");
  if (is_layer(&callee))
    report_help(r, "the input comes first: `%s`, or `%s(%s)`", whole, maker_of(r, call), input ? input : "x");
  else
    report_help(r, "the input comes first: `%s`", whole);
  return true;
}

bool help_input_first(struct resolver *r, const struct expr *call, const struct value *callee) {
  if (!is_layer(callee) || !lacks_input(r, call, callee)) return false;
  report_help(r, "the input comes first: `%s`; `%s` makes a layer that is called later",
              with_input(r, call, "x"), maker_of(r, call));
  return true;
}

void help_curried(struct resolver *r, const struct expr *e) {
  const struct expr *call = e->base;
  if (call->kind != EXPR_CALL || is_maker(call->base)) return;
  const struct expr *root = call->base;
  while (root->kind == EXPR_MEMBER) root = root->base;
  bool layer = root->kind == EXPR_NAME && strcmp(root->name, "nn") == 0;
  const char *name = call->base->kind == EXPR_NAME || call->base->kind == EXPR_MEMBER ? call->base->name : "";
  layer = layer || (*name >= 'A' && *name <= 'Z');
  if (layer && callee_of(r, call).kind == VALUE_ERROR)
    report_help(r, "a layer is called once, and its input comes first: `nn.dense(x, 64)`");
}

void help_call(struct resolver *r, const struct expr *call, const char *const *missing, int count) {
  const char *name = source_of(r, call->base->loc);
  if (!name) return;
  struct str s = str_make(r->arena);
  const char *comma = "";
  const struct arg *a = call->items.first;
  for (; a && !a->name; a = a->next, comma = ", ") {
    const char *text = source_of(r, a->loc);
    str_printf(&s, "%s%s", comma, text ? text : "...");
  }
  for (int i = 0; i < count; i++, comma = ", ") str_printf(&s, a ? "%s%s = ..." : "%s%s", comma, missing[i]);
  for (; a; a = a->next, comma = ", ") {
    const char *text = source_of(r, a->loc);
    str_printf(&s, "%s%s", comma, text ? text : "...");
  }
  report_help(r, "write `%s(%s)`", name, s.data);
}

/* What a parameter has by default, if that is called in its turn, as an activation is: a word for it, else NULL. */
static const char *taken_by(struct resolver *r, const struct function *f, const struct param *p) {
  if (!p->value || p->value->kind != EXPR_NAME) return NULL;
  for (const struct module *m = f->module; m; m = m->outer) {
    const struct value *v = module_find(r, m, p->value->name);
    if (v && v->kind == VALUE_FUNCTION) return def_kind_name(v->function->def->kind);
    if (v) return NULL;
  }
  return is_built_in(p->value->name) ? "function" : NULL;
}

bool report_called(struct resolver *r, const struct function *f, const struct param *p, const struct arg *a) {
  const struct expr *call = a->value;
  if (call->kind != EXPR_CALL || is_maker(call->base) || !taken_by(r, f, p)) return false;
  struct value callee = callee_of(r, call);
  bool starts = callee.kind == VALUE_FUNCTION && callee.function->def->kind == DEF_INITIALIZER;
  if (starts ? r->first_value.type != NULL : !lacks_input(r, call, &callee)) return false;
  const char *kind = starts ? "an initializer" : is_layer(&callee) ? "a layer" : "a function";
  report(r, call->loc, "`%s` of `%s` takes %s, not what a call of it gives", p->name, f->def->name, kind);
  const char *name = source_of(r, call->base->loc), *text = source_of(r, call->loc);
  if (!call->items.count || is_layer(&callee) || !text || !name)
    report_help(r, "without brackets: `%s = %s`", p->name, name ? name : "name");
  else if (starts)
    report_help(r, "define one beside the model: `initializer first() { return %s }`, and write `%s = first`",
                text, p->name);
  else
    report_help(r, "define one beside the model: `function act(x) { return %s }`, and write `%s = act`",
                with_input(r, call, "x"), p->name);
  return true;
}

bool report_no_function(struct resolver *r, const struct function *f, const struct param *p,
                        const struct value *v) {
  const char *taken = is_library(r, f->def->loc) ? taken_by(r, f, p) : NULL;
  if (!taken || !(value_is_scalar(v) || v->kind == VALUE_NONE)) return false;
  bool starts = strcmp(taken, "initializer") == 0;
  report(r, v->at, "`%s` of `%s` takes %s %s, not %s", p->name, f->def->name, starts ? "an" : "a", taken,
         value_describe(r->arena, v));
  if (starts && v->kind != VALUE_NONE)
    report_help(r, "define one beside the model: `initializer first() { return %s }`, and write `%s = first`",
                value_text(r->arena, v), p->name);
  else if (!starts && v->kind == VALUE_NONE)
    report_help(r, "write `%s = identity`", p->name);
  return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Constructors of the syntax tree. They measure nesting, and report tokens that cannot be what they look
 * like. */
#include "frontend/parse.h"

#include <math.h>
#include <string.h>

static int deeper(int a, int b) { return a > b ? a : b; }

static int depth_of(const struct expr *e) { return e ? e->depth : 0; }

static void too_deep(struct parser *p, struct loc loc) {
  if (!p->fatal) diag_error(p->diags, loc, "this is nested more than %d deep", MAX_NESTING);
  p->fatal = true;
}

static struct expr *set_depth(struct parser *p, struct expr *e, int depth) {
  e->depth = depth;
  if (depth > MAX_NESTING) too_deep(p, e->loc);
  return e;
}

static struct expr *ast_leaf(struct parser *p, struct loc loc, enum expr_kind kind) {
  struct expr *e = arena_new(p->arena, struct expr);
  e->kind = kind;
  e->loc = loc;
  e->depth = 1;
  return e;
}

const char *ast_text(struct parser *p, struct loc loc, struct slice text) {
  if (text.len <= MAX_NAME) return arena_strndup(p->arena, text.text, text.len);
  diag_error(p->diags, loc, "a name may have at most %d letters", MAX_NAME);
  return arena_strndup(p->arena, text.text, MAX_NAME);
}

struct expr *ast_int(struct parser *p, struct loc loc, struct slice text) {
  struct expr *e = ast_leaf(p, loc, EXPR_INT);
  for (size_t i = 0; i < text.len; i++) {
    if (text.text[i] == '_') continue;
    if (__builtin_mul_overflow(e->i, 10, &e->i) || __builtin_add_overflow(e->i, text.text[i] - '0', &e->i)) {
      diag_error(p->diags, loc, "this number does not fit into 64 bits");
      e->i = 0;
      break;
    }
  }
  return e;
}

struct expr *ast_float(struct parser *p, struct loc loc, struct slice text) {
  struct expr *e = ast_leaf(p, loc, EXPR_FLOAT);
  if (text.len > 400) {
    diag_error(p->diags, loc, "this number has too many digits");
    return e;
  }
  struct str s = str_make(p->arena);
  for (size_t i = 0; i < text.len; i++)
    if (text.text[i] != '_') str_putc(&s, text.text[i]);
  const char *end;
  e->f = str_to_double(s.data, &end);
  if (isinf(e->f)) diag_error(p->diags, loc, "this number is too large");
  return e;
}

struct expr *ast_string(struct parser *p, struct loc loc, struct slice text) {
  struct expr *e = ast_leaf(p, loc, EXPR_STRING);
  struct str s = str_make(p->arena);
  for (size_t i = 1; i + 1 < text.len; i++) {
    char c = text.text[i];
    if (c == 0) {
      diag_error(p->diags, loc, "a string cannot hold a zero byte");
      break;
    }
    if (c == '\\') {
      c = text.text[++i];
      if (c == 'n')
        c = '\n';
      else if (c == 't')
        c = '\t';
      else if (c != '"' && c != '\\')
        diag_error(p->diags, loc, "strings know only the escapes \\n, \\t, \\\" and \\\\");
    }
    str_putc(&s, c);
  }
  e->name = s.data;
  return e;
}

struct expr *ast_bool(struct parser *p, struct loc loc, bool b) {
  struct expr *e = ast_leaf(p, loc, EXPR_BOOL);
  e->b = b;
  return e;
}

struct expr *ast_name(struct parser *p, struct loc loc, struct slice text) {
  struct expr *e = ast_leaf(p, loc, EXPR_NAME);
  e->name = ast_text(p, loc, text);
  return e;
}

struct expr *ast_member(struct parser *p, struct loc loc, struct expr *base, struct slice name) {
  struct expr *e = ast_leaf(p, loc, EXPR_MEMBER);
  e->base = base;
  e->name = ast_text(p, loc, name);
  return set_depth(p, e, base->depth + 1);
}

struct expr *ast_unary(struct parser *p, struct loc loc, enum operator op, struct expr *x) {
  struct expr *e = ast_leaf(p, loc, EXPR_UNARY);
  e->op = op;
  e->lhs = x;
  return set_depth(p, e, x->depth + 1);
}

struct expr *ast_binary(struct parser *p, struct loc loc, enum operator op, struct expr *l, struct expr *r) {
  struct expr *e = ast_leaf(p, loc, EXPR_BINARY);
  e->op = op;
  e->lhs = l;
  e->rhs = r;
  int left = l->kind == EXPR_BINARY ? l->depth : l->depth + 1;
  return set_depth(p, e, deeper(left, r->depth + 1));
}

struct expr *ast_conditional(struct parser *p, struct loc loc, struct expr *yes, struct expr *condition,
                             struct expr *no) {
  struct expr *e = ast_leaf(p, loc, EXPR_CONDITIONAL);
  e->lhs = yes;
  e->condition = condition;
  e->rhs = no;
  return set_depth(p, e, deeper(deeper(yes->depth, condition->depth), no->depth) + 1);
}

struct expr *ast_items(struct parser *p, struct loc loc, enum expr_kind kind, struct expr *base,
                       struct args items) {
  struct expr *e = ast_leaf(p, loc, kind);
  e->base = base;
  e->items = items;
  if (kind == EXPR_CALL) e->call = arena_new(p->arena, struct call_note);
  int depth = depth_of(base);
  for (struct arg *a = items.first; a; a = a->next) depth = deeper(depth, a->value->depth);
  return set_depth(p, e, depth + 1);
}

struct expr *ast_range(struct parser *p, struct loc loc, struct expr *l, struct expr *r, struct expr *step) {
  struct expr *e = ast_leaf(p, loc, EXPR_RANGE);
  e->lhs = l;
  e->rhs = r;
  e->condition = step;
  return set_depth(p, e, deeper(deeper(depth_of(l), depth_of(r)), depth_of(step)) + 1);
}

struct expr *ast_rest(struct parser *p, struct loc loc, struct expr *x) {
  struct expr *e = ast_leaf(p, loc, EXPR_REST);
  e->lhs = x;
  return set_depth(p, e, depth_of(x) + 1);
}

#define APPEND(list, new)        \
  do {                           \
    if ((list).last)             \
      (list).last->next = (new); \
    else                         \
      (list).first = (new);      \
    (list).last = (new);         \
  } while (0)

struct args ast_args(struct parser *p, struct args list, struct loc loc, const char *name,
                     struct expr *value) {
  struct arg *a = arena_new(p->arena, struct arg);
  *a = (struct arg){NULL, name, loc, value};
  APPEND(list, a);
  list.count++;
  return list;
}

struct names ast_names(struct parser *p, struct names list, struct loc loc, struct slice name) {
  struct name *n = arena_new(p->arena, struct name);
  *n = (struct name){NULL, ast_text(p, loc, name), loc};
  APPEND(list, n);
  list.count++;
  return list;
}

struct params ast_params(struct parser *p, struct params list, struct loc loc, struct slice name,
                         struct expr *type, struct expr *value) {
  struct param *new = arena_new(p->arena, struct param);
  *new = (struct param){NULL, ast_text(p, loc, name), loc, type, value};
  for (struct param *q = list.first; q; q = q->next)
    if (strcmp(q->name, new->name) == 0) {
      diag_error(p->diags, loc, "there are two parameters `%s`", new->name);
      diag_note(p->diags, q->loc, "the first one is here");
      break;
    }
  if (list.last && list.last->value && !value)
    diag_error(p->diags, loc, "`%s` needs a default, because `%s` before it has one", new->name,
               list.last->name);
  if (list.count == 64) diag_error(p->diags, loc, "a definition may have at most 64 parameters");
  if (list.count >= 64) return list;
  APPEND(list, new);
  list.count++;
  return list;
}

struct stmt *ast_stmt(struct parser *p, struct loc loc, enum stmt_kind kind, struct names names,
                      struct expr *value) {
  struct stmt *s = arena_new(p->arena, struct stmt);
  s->kind = kind;
  s->loc = loc;
  s->names = names;
  s->value = value;
  s->effect = arena_new(p->arena, uint8_t);
  return s;
}

struct stmt *ast_scan(struct parser *p, struct loc loc, struct names stacks, struct args settings,
                      struct names carried, struct args sequences, struct block body) {
  struct stmt *s = ast_stmt(p, loc, STMT_SCAN, stacks, NULL);
  s->settings = settings;
  s->carried = carried;
  s->entries = sequences;
  s->body = body;
  return s;
}

struct block ast_block(struct parser *p, struct block list, struct stmt *s) {
  if (!s) return list;
  APPEND(list, s);
  int depth = 1 + deeper(s->body.depth, s->otherwise.depth);
  list.depth = deeper(list.depth, depth);
  if (list.depth > MAX_NESTING) too_deep(p, s->loc);
  return list;
}

void ast_def(struct parser *p, enum def_kind kind, struct loc loc, struct slice name, struct params params,
             struct args with, struct block body) {
  struct def *d = arena_new(p->arena, struct def);
  *d = (struct def){kind, NULL, ast_text(p, loc, name), loc, params, with, body};
  if (p->file->last_def)
    p->file->last_def->next = d;
  else
    p->file->defs = d;
  p->file->last_def = d;
}

void ast_use(struct parser *p, struct loc loc, const char *what, bool is_path, const char *as) {
  struct use *u = arena_new(p->arena, struct use);
  *u = (struct use){NULL, loc, what, is_path, as};
  if (p->file->last_use)
    p->file->last_use->next = u;
  else
    p->file->uses = u;
  p->file->last_use = u;
}

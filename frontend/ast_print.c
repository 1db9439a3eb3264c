/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax tree as canonical text: two spaces per block, parentheses only where the tree needs them. */
#include "frontend/ast.h"

static void put_expr(struct str *s, const struct expr *e, int outer);

static void put_items(struct str *s, const struct args *items) {
  for (const struct arg *a = items->first; a; a = a->next) {
    if (a->name) str_put(s, a->name), str_put(s, " = ");
    put_expr(s, a->value, 0);
    if (a->next) str_put(s, ", ");
  }
}

static void put_string(struct str *s, const char *text) {
  str_putc(s, '"');
  for (; *text; text++) {
    if (*text == '\n')
      str_put(s, "\\n");
    else if (*text == '\t')
      str_put(s, "\\t");
    else {
      if (*text == '"' || *text == '\\') str_putc(s, '\\');
      str_putc(s, *text);
    }
  }
  str_putc(s, '"');
}

/* How tightly the printed form of `e` binds. */
static int precedence_of(const struct expr *e) {
  switch (e->kind) {
  case EXPR_UNARY:
  case EXPR_BINARY: return operators[e->op].precedence;
  case EXPR_CONDITIONAL: return PRECEDENCE_CONDITIONAL;
  case EXPR_INT:
  case EXPR_FLOAT:
  case EXPR_STRING:
  case EXPR_BOOL:
  case EXPR_NAME:
  case EXPR_MEMBER:
  case EXPR_LIST:
  case EXPR_CALL:
  case EXPR_INDEX:
  case EXPR_RANGE:
  case EXPR_REST: break;
  }
  return PRECEDENCE_POSTFIX;
}

/* A chain of operators: opens what stands at its left end first, walking `lhs` without recursion. */
static void put_binary(struct str *s, const struct expr *e) {
  int n = 1;
  const struct expr *left = e;
  while (left->lhs->kind == EXPR_BINARY) left = left->lhs, n++;
  const struct expr **chain = arena_new_array(s->arena, (size_t)n, const struct expr *);
  left = e;
  for (int i = n; i-- > 0; left = left->lhs) chain[i] = left;

  /* Parentheses around chain[i] within chain[i + 1], opened from the outside in. */
  for (int i = n - 1; i-- > 0;) {
    int p = operators[chain[i + 1]->op].precedence;
    bool tight = chain[i + 1]->op == OPERATOR_POW || (p == operators[OPERATOR_EQ].precedence);
    if (operators[chain[i]->op].precedence < p + tight) str_putc(s, '(');
  }
  for (int i = 0; i < n; i++) {
    int p = operators[chain[i]->op].precedence;
    bool tight = chain[i]->op == OPERATOR_POW || (p == operators[OPERATOR_EQ].precedence);
    if (i == 0)
      put_expr(s, chain[0]->lhs, p + tight);
    else if (operators[chain[i - 1]->op].precedence < p + tight)
      str_putc(s, ')');
    str_printf(s, " %s ", operators[chain[i]->op].text);
    put_expr(s, chain[i]->rhs, chain[i]->op == OPERATOR_POW ? p : p + 1);
  }
}

static void put_bare(struct str *s, const struct expr *e) {
  switch (e->kind) {
  case EXPR_INT: str_printf(s, "%lld", (long long)e->i); break;
  case EXPR_FLOAT: str_double(s, e->f); break;
  case EXPR_STRING: put_string(s, e->name); break;
  case EXPR_BOOL: str_put(s, e->b ? "true" : "false"); break;
  case EXPR_NAME: str_put(s, e->name); break;
  case EXPR_MEMBER:
    put_expr(s, e->base, PRECEDENCE_POSTFIX);
    str_putc(s, '.');
    str_put(s, e->name);
    break;
  case EXPR_UNARY:
    str_put(s, operators[e->op].text);
    if (e->op == OPERATOR_NOT) str_putc(s, ' ');
    put_expr(s, e->lhs, operators[e->op].precedence);
    break;
  case EXPR_BINARY: put_binary(s, e); break;
  case EXPR_CONDITIONAL:
    put_expr(s, e->lhs, PRECEDENCE_CONDITIONAL + 1);
    str_put(s, " if ");
    put_expr(s, e->condition, PRECEDENCE_CONDITIONAL + 1);
    str_put(s, " else ");
    put_expr(s, e->rhs, PRECEDENCE_CONDITIONAL);
    break;
  case EXPR_LIST:
    str_putc(s, '[');
    put_items(s, &e->items);
    str_putc(s, ']');
    break;
  case EXPR_CALL:
  case EXPR_INDEX:
    put_expr(s, e->base, PRECEDENCE_POSTFIX);
    str_putc(s, e->kind == EXPR_CALL ? '(' : '[');
    put_items(s, &e->items);
    str_putc(s, e->kind == EXPR_CALL ? ')' : ']');
    break;
  case EXPR_RANGE:
    if (e->lhs) put_expr(s, e->lhs, 0);
    str_putc(s, ':');
    if (e->rhs) put_expr(s, e->rhs, 0);
    if (e->condition) {
      str_putc(s, ':');
      put_expr(s, e->condition, 0);
    }
    break;
  case EXPR_REST:
    str_put(s, "...");
    if (e->lhs) put_expr(s, e->lhs, PRECEDENCE_POSTFIX);
    break;
  }
}

/* Parentheses when `outer` binds tighter. */
static void put_expr(struct str *s, const struct expr *e, int outer) {
  bool parens = precedence_of(e) < outer;
  if (parens) str_putc(s, '(');
  put_bare(s, e);
  if (parens) str_putc(s, ')');
}

void ast_print_expr(struct str *s, const struct expr *e) { put_expr(s, e, 0); }

static void put_indent(struct str *s, int depth) {
  for (int i = 0; i < depth; i++) str_put(s, "  ");
}

static void put_block(struct str *s, const struct block *b, int depth);

static void put_names(struct str *s, const struct names *names) {
  for (const struct name *n = names->first; n; n = n->next) {
    str_put(s, n->text);
    if (n->next) str_put(s, ", ");
  }
}

static void put_field(struct str *s, const char *before, const struct expr *e) {
  if (!e) return;
  str_put(s, before);
  put_expr(s, e, 0);
}

static void put_if(struct str *s, const struct stmt *st, int depth) {
  for (;;) {
    put_field(s, "if ", st->value);
    put_block(s, &st->body, depth);
    const struct stmt *only = st->otherwise.first;
    if (!only) return;
    str_put(s, " else ");
    if (only->kind != STMT_IF || only->next) break;
    st = only;
  }
  s->len--; /* put_block begins with a blank */
  put_block(s, &st->otherwise, depth);
}

static void put_scan(struct str *s, const struct stmt *st, int depth) {
  str_put(s, st->names.count ? " = scan" : "scan");
  for (const struct arg *a = st->settings.first; a; a = a->next) {
    str_put(s, a == st->settings.first ? "(" : ", ");
    if (a->name) str_printf(s, "%s = ", a->name);
    put_expr(s, a->value, 0);
    if (!a->next) str_putc(s, ')');
  }
  if (st->carried.count) str_putc(s, ' ');
  put_names(s, &st->carried);
  for (const struct arg *a = st->entries.first; a; a = a->next) {
    str_printf(s, "%s%s", a == st->entries.first ? " over " : ", ", a->name);
    put_field(s, " in ", a->value);
  }
  put_block(s, &st->body, depth);
}

/* ` : type = value aggregation(sum)` */
static void put_declared(struct str *s, const struct stmt *st) {
  put_field(s, " : ", st->type);
  put_field(s, " = ", st->value);
  for (const struct arg *a = st->entries.first; a; a = a->next)
    str_printf(s, " %s(%s)", a->name, a->value->name);
}

static void put_for(struct str *s, const struct stmt *st, int depth) {
  put_field(s, " in ", st->value);
  put_field(s, "..", st->limit);
  put_block(s, &st->body, depth);
}

static void put_train(struct str *s, const struct stmt *st) {
  put_field(s, st->names.count ? " = " : "", st->value);
  put_field(s, " with ", st->optimizer);
  put_field(s, " over ", st->over);
}

static void put_data(struct str *s, const struct stmt *st, int depth) {
  str_put(s, " {\n");
  for (const struct arg *a = st->entries.first; a; a = a->next) {
    put_indent(s, depth + 1);
    str_put(s, a->name);
    put_field(s, " = ", a->value);
    str_putc(s, '\n');
  }
  put_indent(s, depth);
  str_putc(s, '}');
}

/* What stands behind the statement's word and names. */
static void put_rest(struct str *s, const struct stmt *st, int depth) {
  switch (st->kind) {
  case STMT_INPUT:
  case STMT_VAR:
  case STMT_STATE: put_declared(s, st); break;
  case STMT_ASSIGN: put_field(s, " <- ", st->value); break;
  case STMT_ADD: put_field(s, " += ", st->value); break;
  case STMT_RETURN:
  case STMT_STRATEGY: put_field(s, "", st->value); break;
  case STMT_FOR: put_for(s, st, depth); break;
  case STMT_SCAN: put_scan(s, st, depth); break;
  case STMT_IF: put_if(s, st, depth); break;
  case STMT_BIND:
  case STMT_METRIC:
  case STMT_PREDICT: put_field(s, " = ", st->value); break;
  case STMT_TRAIN: put_train(s, st); break;
  case STMT_DATA: put_data(s, st, depth); break;
  case STMT_ON: break;
  }
}

static void put_stmt(struct str *s, const struct stmt *st, int depth) {
  static const char *const words[] = {
      [STMT_INPUT] = "input ",
      [STMT_VAR] = "var ",
      [STMT_STATE] = "state ",
      [STMT_BIND] = "",
      [STMT_ASSIGN] = "",
      [STMT_RETURN] = "return ",
      [STMT_FOR] = "for ",
      [STMT_SCAN] = "",
      [STMT_IF] = "",
      [STMT_TRAIN] = "train ",
      [STMT_METRIC] = "metric ",
      [STMT_PREDICT] = "predict ",
      [STMT_DATA] = "data ",
      [STMT_STRATEGY] = "strategy ",
      [STMT_ON] = "",
      [STMT_ADD] = "",
  };
  str_put(s, words[st->kind]);
  put_names(s, &st->names);
  put_rest(s, st, depth);
  if (st->place) {
    str_put(s, st->kind == STMT_ON ? "on " : " on ");
    put_expr(s, st->place, PRECEDENCE_POSTFIX);
  }
  if (st->kind == STMT_ON) put_block(s, &st->body, depth);
}

static void put_block(struct str *s, const struct block *b, int depth) {
  str_put(s, " {\n");
  for (const struct stmt *st = b->first; st; st = st->next) {
    put_indent(s, depth + 1);
    put_stmt(s, st, depth + 1);
    str_putc(s, '\n');
  }
  put_indent(s, depth);
  str_putc(s, '}');
}

void ast_print(struct str *s, const struct file *file) {
  for (const struct use *u = file->uses; u; u = u->next) {
    str_put(s, "use ");
    if (u->is_path)
      put_string(s, u->what);
    else
      str_put(s, u->what);
    if (u->as) str_put(s, " as "), str_put(s, u->as);
    str_putc(s, '\n');
  }
  for (const struct def *d = file->defs; d; d = d->next) {
    if (d != file->defs || file->uses) str_putc(s, '\n');
    str_put(s, def_kind_name(d->kind));
    str_putc(s, ' ');
    str_put(s, d->name);
    str_putc(s, '(');
    for (const struct param *q = d->params.first; q; q = q->next) {
      str_put(s, q->name);
      put_field(s, " : ", q->type);
      put_field(s, " = ", q->value);
      if (q->next) str_put(s, ", ");
    }
    str_putc(s, ')');
    for (const struct arg *w = d->with.first; w; w = w->next) {
      str_printf(s, " with %s", w->name);
      put_field(s, " = ", w->value);
    }
    put_block(s, &d->body, 0);
    str_putc(s, '\n');
  }
}

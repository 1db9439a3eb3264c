/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions. Chains of operators are walked, not recursed into; everything else is at most MAX_EVAL deep. */
#include "frontend/elsewhere.h"
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <string.h>

const char *role_path(struct resolver *r, const struct role *role) {
  struct str s = str_make(r->arena);
  const struct role *chain[64];
  int n = 0;
  for (const struct role *q = role; q && n < 64; q = q->outer) chain[n++] = q;
  str_put(&s, r->path);
  while (n-- > 0) {
    if (s.len) str_putc(&s, '.');
    if (chain[n]->name) str_put(&s, chain[n]->name);
    if (!chain[n]->name)
      str_printf(&s, "%d", chain[n]->index);
    else if (chain[n]->index)
      str_printf(&s, "_%d", chain[n]->index);
  }
  return s.data;
}

/* What repeats a body so often that a limit is met. */
static void help_scan(struct resolver *r) {
  if (r->frame && r->frame->loops > r->frame->step)
    report_help(r,
                "`for` repeats its body when the model is compiled; the body of a `scan` is compiled once");
}

bool spend(struct resolver *r, struct loc loc) {
  if (r->budget.stopped) return false;
  if (++r->budget.steps > MAX_STEPS &&
      any_errors(r)) { /* what was wrong before may be why it takes so long */
    r->budget.stopped = true;
    return false;
  }
  if (r->budget.steps > MAX_STEPS)
    report(r, loc, "compiling this model takes more than %d steps", MAX_STEPS), help_scan(r);
  else if (r->g->count > MAX_NODES || r->init->count > MAX_NODES)
    report(r, loc, "this model has more than %d nodes", MAX_NODES), help_scan(r);
  else
    return true;
  r->budget.stopped = true;
  return false;
}

static struct value eval_name(struct resolver *r, const struct expr *e) {
  struct value v = lookup(r, e->name, false);
  if (v.kind == VALUE_ERROR && !scope_find(r, e->name)) report_unknown(r, e->loc, e->name, false);
  const struct variable *variable = v.kind == VALUE_TENSOR ? v.tensor.variable : NULL;
  if (variable && v.tensor.graph == r->g && variable == r->update.variable) {
    v.tensor.node = variable_now(r, variable);
    if (!v.tensor.node) return value_error();
  }
  /* Where another variable gets its first value, that is what this one has. */
  const struct node *first = variable && r->g == r->init && v.tensor.graph != r->g
                                 ? graph_find(r->init, arena_printf(r->arena, "%s.update", variable->path))
                                 : NULL;
  if (node_is(first, OP_assign)) {
    v = value_tensor(r, r->first_value.of_master ? variable->unrounded : first->inputs[1], e->loc);
    r->first_value.read = variable;
  }
  return v;
}

/* What is said of a member that there is not, whatever it is of: false if nothing is known of the word. */
static bool help_member(struct resolver *r, const char *name) {
  const char *help = elsewhere_help(r->arena, name);
  if (help) report_help(r, "%s", help);
  return help != NULL;
}

static struct value eval_member(struct resolver *r, const struct expr *e) {
  if (report_elsewhere(r, e)) return value_error();
  struct value base = eval(r, e->base, NULL);
  if (base.kind == VALUE_ERROR) return base;
  if (base.kind == VALUE_LAYER) return layer_member(r, base.layer, e->name, e->loc);
  if (base.kind != VALUE_MODULE) {
    report(r, e->loc, "only libraries have members, not %s", value_describe(r->arena, &base));
    struct value function = lookup(r, e->name, true);
    if (value_is_callable(&function))
      report_help(r, "it is a function: `%s(...)`", e->name);
    else if (help_member(r, e->name))
      ;
    else if (base.kind == VALUE_TENSOR)
      report_help(
          r,
          "the variables of a layer are seen inside of it, and as `layer.kernel` where it is made by `new`");
    else if (base.kind == VALUE_FUNCTION && is_maker(e))
      report_help(r, "`new` makes a layer where it is called: `%s.new(...)`", base.function->def->name);
    return value_error();
  }
  const struct value *v = module_find(r, base.module, e->name);
  if (v) return *v;
  report_no_member(r, e->loc, base.module, e->name);
  return value_error();
}

static struct value eval_list(struct resolver *r, const struct expr *e, const struct role *role) {
  struct value v = {.kind = VALUE_LIST};
  int cap = e->items.count, i = 0;
  v.list.items = arena_new_array(r->arena, (size_t)cap, struct value);
  for (const struct arg *a = e->items.first; a; a = a->next, i++) {
    struct role inner = {role, NULL, i};
    if (a->value->kind == EXPR_RANGE || (a->value->kind == EXPR_REST && !a->value->lhs)) {
      report(r, a->loc, "this has a meaning only in an index");
      return value_error();
    }
    if (a->value->kind != EXPR_REST) {
      struct value item = eval(r, a->value, &inner);
      if (item.kind == VALUE_ERROR) return item;
      v.list.items[v.list.count++] = item;
      continue;
    }
    struct value rest = eval(r, a->value->lhs, &inner);
    if (rest.kind != VALUE_LIST) {
      if (rest.kind != VALUE_ERROR)
        report(r, a->loc, "`...` spreads a list, not %s", value_describe(r->arena, &rest));
      return value_error();
    }
    struct value sum = const_binary(r, OPERATOR_ADD, &v, &rest, a->loc);
    if (sum.kind != VALUE_LIST) return sum;
    int more = cap - i - 1;
    struct value *items = arena_new_array(r->arena, (size_t)(sum.list.count + more), struct value);
    for (int k = 0; k < sum.list.count; k++) items[k] = sum.list.items[k];
    v.list.items = items;
    v.list.count = sum.list.count;
  }
  return list_seal(r, &v, e->loc) ? v : value_error();
}

static struct value eval_unary(struct resolver *r, const struct expr *e, const struct role *role) {
  struct role inner = {role, "x", 0};
  struct value v = eval(r, e->lhs, &inner);
  if (v.kind == VALUE_ERROR) return v;
  if (e->op == OPERATOR_NOT) {
    if (v.kind == VALUE_BOOL) return value_bool(!v.b);
    return elementwise(r, OP_not, &v, 1, e->loc);
  }
  if (v.kind == VALUE_INT && v.i != INT64_MIN) return value_int(-v.i);
  if (v.kind == VALUE_FLOAT) return value_float(-v.f);
  return elementwise(r, OP_neg, &v, 1, e->loc);
}

/* `and` and `or` of compile-time values look at the right side only when they must. */
static bool settles(enum operator op, const struct value *left) {
  return left->kind == VALUE_BOOL && ((op == OPERATOR_AND && !left->b) || (op == OPERATOR_OR && left->b));
}

static bool is_tensor_of(const struct value *v, bool floats) {
  if (v->kind != VALUE_TENSOR) return false;
  enum dtype t = (enum dtype)v->tensor.node->type.dtype;
  return t != DT_BOOL && dtype_is_float(t) == floats;
}

/* Of tensors of integers bit by bit, also with a number; in the library, as bit_and, of two numbers. */
static struct value logic(struct resolver *r, enum operator op, struct value *v, struct loc loc) {
  if (v[0].kind == VALUE_BOOL && v[1].kind == VALUE_BOOL) return v[1];
  bool library = is_library(r, loc);
  if (library && v[0].kind == VALUE_INT && v[1].kind == VALUE_INT)
    return const_op(r, op == OPERATOR_AND ? OP_and : OP_or, v, 2, loc);
  for (int i = 0; i < 2; i++)
    if (v[i].kind != VALUE_BOOL && v[i].kind != VALUE_TENSOR && v[i].kind != VALUE_ERROR &&
        !(v[i].kind == VALUE_INT && is_tensor_of(&v[1 - i], false))) {
      bool other = v[i].kind == VALUE_INT && is_tensor_of(&v[1 - i], true);
      report(r, v[i].at, "`%s` works on bool%s, not on %s", operators[op].text,
             library ? " and on integers" : "", value_describe(r->arena, &v[other ? 1 - i : i]));
      return value_error();
    }
  return binary_values(r, op, v, loc);
}

static struct value eval_binary(struct resolver *r, const struct expr *e, const struct role *role) {
  int n = 1;
  const struct expr *left = e;
  while (left->lhs->kind == EXPR_BINARY) left = left->lhs, n++;
  const struct expr *one = left, **chain = &one;
  if (n > 1) {
    chain = arena_new_array(r->arena, (size_t)n, const struct expr *);
    for (int i = n; i-- > 0; e = e->lhs) chain[i] = e;
  }
  struct role inner = {role, "lhs", 0};
  struct value v[2];
  v[0] = eval(r, left->lhs, &inner);
  for (int i = 0; i < n; i++) {
    const struct expr *q = chain[i];
    if (settles(q->op, &v[0])) continue;
    inner = (struct role){role, "rhs", i ? i + 1 : 0};
    v[1] = eval(r, q->rhs, &inner);
    if (!spend(r, q->loc)) return value_error();
    v[0] = q->op == OPERATOR_AND || q->op == OPERATOR_OR ? logic(r, q->op, v, q->loc)
                                                         : binary_values(r, q->op, v, q->loc);
    v[0].at = q->loc;
  }
  return v[0];
}

static struct value eval_conditional(struct resolver *r, const struct expr *e, const struct role *role) {
  bool b;
  if (!eval_bool(r, e->condition, &b)) return value_error();
  return eval(r, b ? e->lhs : e->rhs, role);
}

static struct value eval_kind(struct resolver *r, const struct expr *e, const struct role *role) {
  switch (e->kind) {
  case EXPR_INT: return value_int(e->i);
  case EXPR_FLOAT: return value_float(e->f);
  case EXPR_BOOL: return value_bool(e->b);
  case EXPR_STRING: return (struct value){.kind = VALUE_STRING, .string = e->name};
  case EXPR_NAME: return eval_name(r, e);
  case EXPR_MEMBER: return eval_member(r, e);
  case EXPR_UNARY: return eval_unary(r, e, role);
  case EXPR_BINARY: return eval_binary(r, e, role);
  case EXPR_CONDITIONAL: return eval_conditional(r, e, role);
  case EXPR_LIST: return eval_list(r, e, role);
  case EXPR_CALL: return eval_call(r, e, role);
  case EXPR_INDEX: return eval_index(r, e, role);
  case EXPR_RANGE:
  case EXPR_REST: break;
  }
  report(r, e->loc, "this has a meaning only in an index");
  return value_error();
}

struct value eval(struct resolver *r, const struct expr *e, const struct role *role) {
  if (!spend(r, e->loc)) return value_error();
  if (r->budget.depth == MAX_EVAL) {
    report(r, e->loc, "expressions and calls are nested more than %d deep", MAX_EVAL);
    r->budget.stopped = true;
    return value_error();
  }
  r->budget.depth++;
  struct value v = eval_kind(r, e, role);
  r->budget.depth--;
  if (r->budget.stopped) return value_error();
  v.at = e->loc;
  return v;
}

bool eval_int(struct resolver *r, const struct expr *e, const char *what, int64_t *out) {
  struct value v = eval(r, e, NULL);
  if (v.kind == VALUE_INT) return *out = v.i, true;
  if (v.kind != VALUE_ERROR)
    report(r, e->loc, "%s must be an integer, not %s", what, value_describe(r->arena, &v));
  return false;
}

bool eval_string(struct resolver *r, const struct expr *e, const char *what, const char **out) {
  struct value v = eval(r, e, NULL);
  if (v.kind == VALUE_STRING) return *out = v.string, true;
  if (v.kind != VALUE_ERROR)
    report(r, e->loc, "%s must be a string, not %s", what, value_describe(r->arena, &v));
  return false;
}

bool eval_bool(struct resolver *r, const struct expr *e, bool *out) {
  struct value v = eval(r, e, NULL);
  if (v.kind == VALUE_BOOL) return *out = v.b, true;
  if (v.kind == VALUE_ERROR) return false;
  report(r, e->loc, "a condition must be true or false, not %s", value_describe(r->arena, &v));
  if (v.kind == VALUE_TENSOR) {
    report_value(r, &v);
    report_help(r, "it is decided when the model is compiled; to choose by element use `select(c, a, b)`");
  }
  return false;
}

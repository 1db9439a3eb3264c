/* SPDX-License-Identifier: Apache-2.0 */
/* gradient(y, x): the gradient of a scalar by any value, as a value of the model, which may itself be differentiated.
 *
 * It is expanded at once, so that the rest of the model sees what it is made of. Where a model asks for one, its graph
 * is built literally: no rule reads past a value by which a gradient may be asked. */
#include "frontend/resolve.h"

#include "ir/ops/op_id.h"

#include <string.h>

/* ---- who asks ---- */

static bool is_gradient(const struct expr *e) {
  return e && e->kind == EXPR_NAME && strcmp(e->name, "gradient") == 0;
}

/* Whether e has the function; in an optimizer the name is that of a value, but for calls. */
static bool in_expr(const struct expr *e, bool calls_only) {
  for (; e; e = e->lhs) {
    bool call = e->kind == EXPR_CALL && is_gradient(e->base);
    if (call || (!calls_only && is_gradient(e)) || in_expr(e->base, calls_only) ||
        in_expr(e->condition, calls_only) || in_expr(e->rhs, calls_only))
      return true;
    for (const struct arg *a = e->items.first; a; a = a->next)
      if (in_expr(a->value, calls_only)) return true;
  }
  return false;
}

static bool in_block(const struct block *b, bool calls_only) {
  for (const struct stmt *s = b->first; s; s = s->next)
    if (in_expr(s->value, calls_only) || in_expr(s->limit, calls_only) || in_expr(s->optimizer, calls_only) ||
        in_expr(s->type, calls_only) || in_block(&s->body, calls_only) || in_block(&s->otherwise, calls_only))
      return true;
  return false;
}

bool asks_gradients(const struct file *file) {
  for (const struct def *d = file->defs; d; d = d->next) {
    bool calls_only = d->kind == DEF_OPTIMIZER;
    if (in_block(&d->body, calls_only)) return true;
    for (const struct param *p = d->params.first; p; p = p->next)
      if (in_expr(p->value, calls_only)) return true;
  }
  return false;
}

/* ---- the function ---- */

static bool check_scalar(struct resolver *r, const struct value *y, const struct node *n) {
  const char *name = y->name ? y->name : "y";
  if (!dtype_is_float((enum dtype)n->type.dtype)) {
    report(r, y->at, "a gradient is of a number of f32 or f64, not of %s", type_text(r->arena, &n->type));
    report_value(r, y);
    return false;
  }
  if (n->type.rank == 0) return true;
  report(r, y->at, "a gradient is of one number, not of %s: sum it", type_text(r->arena, &n->type));
  report_value(r, y);
  report_help(r, "write `gradient(sum(%s), x)`%s", name,
              type_batch_axis(&n->type) < 0
                  ? ""
                  : ": it has for each row the gradient of its own, unless others depend on the row, too");
  return false;
}

/* What gradients are by: a node for each. */
struct sought {
  struct node **nodes;
  int count;
};

static bool add_sought(struct resolver *r, const struct value *v, struct loc loc, struct sought *w) {
  if (v->kind == VALUE_ERROR) return false;
  struct value x = *v;
  if (!x.at.source) x.at = loc;
  struct node *n = tensor_node(r, &x, "`x` of a gradient");
  if (!n) return false;
  if (!dtype_is_float((enum dtype)n->type.dtype)) {
    report(r, x.at, "a gradient is by values of f32 or f64, not by %s", type_text(r->arena, &n->type));
    report_value(r, &x);
    return false;
  }
  if (!reach_varying(&r->reach, r->g, n)) {
    report(r, x.at, "a gradient cannot be by a constant");
    report_value(r, &x);
    report_help(r, "equal constants are one value of the graph: declare this one as a `state`");
    return false;
  }
  w->nodes[w->count++] = n;
  return true;
}

/* Whether y is made of a gradient that training has yet to take: of that of an optimizer. */
static bool reads_training(const struct resolver *r) {
  const struct differentiation *d = &r->differentiation;
  for (uint32_t i = 0; i < d->count; i++)
    if (r->g->nodes[d->ids[i]]->op == OP_gradient) return true;
  return false;
}

/* The gradient by x, which is 0 where y does not depend on it. */
static struct value gradient_by(struct resolver *r, struct node *x, struct node *dx, struct loc loc) {
  if (!dx && r->run.number == 1 && !is_library(r, loc))
    diag_warning(r->diags, loc, "this gradient is 0 everywhere: nothing flows back to `%s`", x->name);
  if (!dx) dx = build_fill(r->g, &x->type, 0);
  return value_tensor(r, dx, loc);
}

/* gradient(y, x): dy/dx, of x's type; of a list x a list. */
static struct value run_gradient(struct resolver *r, struct value *args, struct loc loc,
                                 const struct role *role) {
  (void)role;
  struct node *y = tensor_node(r, &args[0], "`y` of a gradient");
  if (!y || !check_scalar(r, &args[0], y)) return value_error();
  bool list = args[1].kind == VALUE_LIST;
  const struct value *items = list ? args[1].list.items : &args[1];
  int count = list ? args[1].list.count : 1;
  struct sought w = {arena_new_array(r->arena, (size_t)count, struct node *), 0};
  for (int i = 0; i < count; i++)
    if (!add_sought(r, &items[i], args[1].at, &w)) return value_error();
  struct node **dx = arena_new_array(r->arena, (size_t)count, struct node *);
  differentiate(&r->differentiation, r->g, y, count, w.nodes, dx);
  if (reads_training(r)) {
    report(r, loc, "an optimizer's `gradient` cannot be differentiated once more");
    report_help(r, "`gradient(loss, x)` in the model can");
    return value_error();
  }
  build_here(r, loc);
  struct value v = {.kind = VALUE_LIST, .at = loc};
  if (!list) return gradient_by(r, w.nodes[0], dx[0], loc);
  v.list.items = arena_new_array(r->arena, (size_t)count, struct value);
  for (int i = 0; i < count; i++) v.list.items[v.list.count++] = gradient_by(r, w.nodes[i], dx[i], loc);
  return list_seal(r, &v, loc) ? v : value_error();
}

const struct builtin builtins_gradient[] = {
    {"gradient", {"y", "x"}, 2, run_gradient},
    {NULL, {NULL}, 0, NULL},
};

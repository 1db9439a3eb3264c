/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers: what stands behind `with` is run for each variable that a loss trains.
 *
 * Several make a chain. Each is run for all variables before the next, and hands its gradients on, or assigns. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <string.h>

/* adam(1e-3).clip(1.0), where a list has both. */
static bool report_method(struct resolver *r, const struct expr *call) {
  const struct expr *method = call->base, *of = method->kind == EXPR_MEMBER ? method->base : NULL;
  if (!of || of->kind != EXPR_CALL) return false;
  const char *text = of->loc.source->text + of->loc.begin;
  int n = (int)(of->loc.end - of->loc.begin);
  bool clips = strncmp(method->name, "clip", 4) == 0;
  report(r, method->loc, "an optimizer has no part `%s`", method->name);
  struct value one = lookup(r, method->name, true);
  bool known = one.kind == VALUE_FUNCTION && one.function->def->kind == DEF_OPTIMIZER;
  report_help(r, "several stand in a list, what changes gradients in front: `[%s(1.0), %.*s]`",
              known   ? method->name
              : clips ? "clip_by_global_norm"
                      : "clip_by_norm",
              n < 60 ? n : 6, n < 60 ? text : "adam()");
  return true;
}

static const struct function *optimizer_of(struct resolver *r, const struct expr *call,
                                           struct value *callee) {
  if (report_method(r, call)) return NULL;
  *callee = call->base->kind == EXPR_NAME ? lookup(r, call->base->name, true) : eval(r, call->base, NULL);
  if (callee->kind == VALUE_FUNCTION && callee->function->def->kind == DEF_OPTIMIZER) return callee->function;
  if (callee->kind == VALUE_ERROR) {
    if (call->base->kind == EXPR_NAME) report_unknown(r, call->base->loc, call->base->name, true);
    return NULL;
  }
  report(r, call->base->loc, "behind `with` stands an optimizer, not %s", value_describe(r->arena, callee));
  if (callee->kind == VALUE_STRING)
    report_help(r, "without quotes: `%s()`", lower_case(r->arena, callee->string));
  if (callee->kind == VALUE_FUNCTION && callee->function->def->kind == DEF_FUNCTION)
    report_help(r, "a rate that changes stands in an optimizer: `sgd(%s(...))`", callee->function->def->name);
  return NULL;
}

struct chain {
  const struct stmt *s;
  struct trained *trained;
  int count;
  const struct expr *unread;         /* the first behind the last that assigns which hands a gradient on */
  struct value variables, gradients; /* lists of them */
};

/* The optimizers behind `with`: a list has several. */
static int links_of(const struct expr *e, struct arena *a, const struct expr ***out) {
  bool list = e->kind == EXPR_LIST;
  int count = 0;
  *out = arena_new_array(a, (size_t)(list ? e->items.count : 1), const struct expr *);
  if (!list) return (*out)[0] = e, 1;
  for (const struct arg *q = e->items.first; q; q = q->next) (*out)[count++] = q->value;
  return count;
}

/* Lists for all of a link. Those that are left out have no part in them. */
static bool list_trained(struct resolver *r, struct chain *c, struct loc loc) {
  struct value *lists[2] = {&c->variables, &c->gradients};
  for (int k = 0; k < 2; k++) {
    struct value *v = lists[k];
    *v = (struct value){.kind = VALUE_LIST, .at = loc};
    v->list.items = arena_new_array(r->arena, (size_t)c->count, struct value);
    for (int i = 0; i < c->count; i++) {
      const struct trained *t = &c->trained[i];
      if (!t->left) v->list.items[v->list.count++] = value_tensor(r, k ? t->gradient : t->v->node, loc);
    }
    if (!list_seal(r, v, loc)) return false;
  }
  return true;
}

/* A gradient that one of a chain hands on, in the type of the variable. */
static bool hand_on(struct resolver *r, const struct function *f, struct loc loc, const struct value *y,
                    struct trained *t) {
  struct node *n = value_node(r, y, (enum dtype)t->v->type.dtype);
  bool scalar = n && n->type.rank == 0 && n->type.dtype == t->v->type.dtype;
  if (n && (scalar || type_equal(&n->type, &t->v->type)))
    return (t->gradient = build_broadcast_to(r->g, n, &t->v->type)) != NULL;
  if (!n) return false;
  report(r, loc, "`%s` returns %s in the place of the gradient by `%s`, which is %s", f->def->name,
         type_text(r->arena, &n->type), t->v->path, type_text(r->arena, &t->v->type));
  report_note(r, f->def->loc, "it is defined here");
  return false;
}

/* [gradient, when] or [gradient, when, step]: what stands behind changes nothing where `when` is false, and counts its
 * steps so. */
static bool hand_on_at_times(struct resolver *r, const struct function *f, struct loc loc,
                             const struct value *y, struct trained *t) {
  struct value *items = y->list.items;
  int count = y->list.count;
  struct node *when = count > 1 && items[1].kind == VALUE_TENSOR ? items[1].tensor.node : NULL;
  struct node *step = count == 3 && items[2].kind == VALUE_TENSOR ? items[2].tensor.node : NULL;
  bool fits = count == 2 || count == 3;
  fits = fits && when && when->type.rank == 0 && when->type.dtype == DT_BOOL;
  fits = fits && (count == 2 || (step && step->type.rank == 0 && step->type.dtype == DT_I64));
  if (!fits) {
    report(r, loc, "`%s` returns a list that is not [gradient, when] or [gradient, when, step]",
           f->def->name);
    report_note(r, f->def->loc, "it is defined here");
    report_help(r, "`when` is a scalar of bool, `step` of i64");
    return false;
  }
  t->when = t->when ? build2(r->g, OP_and, t->when, when) : when;
  if (step) t->step = step;
  return hand_on(r, f, loc, &items[0], t);
}

/* One of a chain, for one variable; *hands_on: it has returned something. False after an error. */
static bool run_link(struct resolver *r, struct chain *c, const struct function *f, struct value *args,
                     const struct expr *call, struct trained *t, bool *hands_on) {
  int before = r->diags->nerrors;
  build_here(r, c->s->loc);
  r->update =
      (struct update){t->v, t->gradient, &c->variables, &c->gradients, t->when, t->step, r->update.patterns};
  const char *path = arena_printf(r->arena, "%s.%s", t->v->path, f->def->name);
  bool returned;
  struct value y = call_optimizer(r, f, args, call->loc, path, &returned);
  r->update.variable = NULL;
  r->update.when = NULL;
  if (r->diags->nerrors > before || r->budget.stopped) return false;
  *hands_on |= returned;
  if (!returned) return true;
  if (y.kind == VALUE_NONE) return t->left = true;
  build_here(r, call->loc);
  return y.kind == VALUE_LIST ? hand_on_at_times(r, f, call->loc, &y, t) : hand_on(r, f, call->loc, &y, t);
}

static bool is_asked(const struct resolver *r, const char *text) {
  const struct asked_pattern *p = r->update.patterns;
  while (p && p->text != text) p = p->next;
  return p != NULL;
}

/* A string that was given to one of a chain, which asks by it for variables: the model should have one. */
static void warn_unmatched(struct resolver *r, const struct value *given) {
  if (given->kind == VALUE_LIST)
    for (int i = 0; i < given->list.count; i++) warn_unmatched(r, &given->list.items[i]);
  if (given->kind != VALUE_STRING || !is_asked(r, given->string)) return;
  for (const struct variable *v = r->variables.first; v; v = v->next)
    if (v->trainable && v->run == r->run.number && path_matches(r->arena, v->path, given->string)) return;
  r->errors.quiet = false;
  diag_warning(r->diags, given->at, "no trained variable is called `%s`", given->string);
  for (const struct variable *v = r->variables.first; v; v = v->next)
    if (!v->trainable && v->run == r->run.number && path_matches(r->arena, v->path, given->string)) {
      diag_note(r->diags, v->loc, "`%s` is a state: no optimizer changes it, but what is assigned to it",
                v->path);
      break;
    }
  help_trained(r);
}

/* One of a chain, for all variables, before the next. */
static bool run_links(struct resolver *r, struct chain *c, const struct expr *e, const char *name) {
  struct expr bare = {.kind = EXPR_CALL, .base = (struct expr *)(uintptr_t)e, .loc = e->loc};
  const struct expr *call = e->kind == EXPR_CALL ? e : &bare;
  struct value callee;
  const struct function *f = optimizer_of(r, call, &callee);
  if (!f) return false;
  struct value *args = arena_new_array(r->arena, (size_t)f->def->params.count + 1, struct value);
  r->path = arena_printf(r->arena, "%s.%s", name, f->def->name);
  r->update.step = c->count ? c->trained[0].step : NULL;
  if (!eval_args(r, call, &callee, NULL, args) || !list_trained(r, c, call->loc)) return false;
  bool assigned = false, hands_on = false;
  r->update.patterns = NULL;
  for (int i = 0; i < c->count; i++) {
    struct trained *t = &c->trained[i];
    bool had = t->v->writer == r->run.train_statements;
    if (!t->left && !run_link(r, c, f, args, call, t, &hands_on)) return false;
    assigned |= !had && t->v->writer == r->run.train_statements;
  }
  for (int i = 0; i < f->def->params.count; i++) warn_unmatched(r, &args[i]);
  if (assigned) keep_rate(r, f, args, name);
  c->unread = assigned ? NULL : hands_on && !c->unread ? e : c->unread;
  return true;
}

static void check_read(struct resolver *r, const struct chain *c) {
  if (!c->unread) return;
  report(r, c->unread->loc, "this changes a gradient that nothing behind it reads");
  report_help(r, "what changes a gradient stands before an optimizer, as in `[clip_by_norm(1.0), adam()]`");
}

/* Whether all that is not left out is assigned. */
static void check_assigned(struct resolver *r, const struct chain *c) {
  const struct expr *e = c->s->optimizer;
  for (int i = 0; i < c->count; i++) {
    const struct trained *t = &c->trained[i];
    if (t->left || t->v->writer == r->run.train_statements) continue;
    struct value callee;
    struct expr bare = {.base = (struct expr *)(uintptr_t)e, .loc = e->loc};
    const struct function *f =
        e->kind == EXPR_LIST ? NULL : optimizer_of(r, e->kind == EXPR_CALL ? e : &bare, &callee);
    if (f) {
      report(r, e->loc, "optimizer `%s` does not assign `variable`, so `%s` is not trained", f->def->name,
             t->v->path);
      report_note(r, f->def->loc, "it is defined here");
      report_help(
          r, "what is not to be trained is left out by `over [...]`; what only changes the gradient stands "
             "before an optimizer, as in `[clip_by_norm(1.0), adam()]`");
    } else {
      report(r, e->loc, "none of these optimizers assigns `variable`, so `%s` is not trained", t->v->path);
      report_help(r,
                  "what changes a gradient stands before an optimizer, as in `[clip_by_norm(1.0), adam()]`");
    }
    return;
  }
}

bool run_optimizers(struct resolver *r, const struct stmt *s, const char *loss, struct trained *trained,
                    int count, bool *trains) {
  struct chain c = {.s = s, .trained = trained, .count = count};
  const struct expr **links;
  int nlinks = links_of(s->optimizer, r->arena, &links);
  bool ok = true;
  for (int i = 0; i < nlinks && ok; i++) ok = run_links(r, &c, links[i], loss);
  r->update.step = NULL;
  if (!ok || r->budget.stopped) return false;
  int before = r->diags->nerrors;
  check_assigned(r, &c);
  for (int i = 0; i < count; i++) *trains |= !trained[i].left;
  if (*trains && r->diags->nerrors == before) check_read(r, &c);
  return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Training: which variables a loss trains, the optimizer's run for each, and the assignments of a step.
 *
 * A variable has one writer per step. When two train statements change the same variable, the second
 * optimizer starts from what the first one leaves. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <stdlib.h>
#include <string.h>

/* The variables that the loss can change with, in the order of declaration. The walk costs what the loss is made of,
 * not what the graph holds. */
struct influences {
  struct variable **variables;
  int count;
};

static int by_order(const void *a, const void *b) {
  const struct variable *x = *(struct variable *const *)a, *y = *(struct variable *const *)b;
  return x->order - y->order;
}

static struct influences influences(struct resolver *r, const struct node *loss) {
  struct influences found = {0};
  uint32_t depth = 0;
  walk_begin(&r->walk, r->arena, r->g);
  walk_to(&r->walk, loss, &depth);
  while (depth) {
    const struct node *q = r->walk.stack[--depth];
    struct variable *v = q->op == OP_variable ? map_get(&r->variables.by_path, q->name) : NULL;
    if (v && v->trainable) {
      found.variables = arena_grown(r->arena, found.variables, found.count, sizeof *found.variables);
      found.variables[found.count++] = v;
    }
    if (op_of(q)->traits & OP_NO_GRADIENT) continue;
    for (int i = 0; i < q->ninputs; i++) walk_to(&r->walk, q->inputs[i], &depth);
  }
  if (found.count) qsort(found.variables, (size_t)found.count, sizeof *found.variables, by_order);
  return found;
}

/* Marks the variables that `over` means, by themselves or by the paths in `paths`, and the paths that mean one. */
static void choose(struct resolver *r, const struct value *over, struct map *paths) {
  for (int i = 0; i < over->list.count; i++) {
    const struct value *q = &over->list.items[i];
    if (q->kind == VALUE_TENSOR && q->tensor.variable) q->tensor.variable->chosen = r->run.train_statements;
    if (q->kind == VALUE_STRING) map_put(paths, q->string, r);
    if (q->kind == VALUE_LAYER) map_put(paths, q->layer->owner, r);
  }
  for (struct variable *v = r->variables.first; v && paths->count; v = v->next) {
    if (!v->trainable || v->run != r->run.number) continue;
    for (size_t len = strlen(v->path); len > 0;) {
      if (map_getn(paths, v->path, len)) {
        v->chosen = r->run.train_statements;
        map_put(paths, arena_strndup(r->arena, v->path, len), v);
      }
      while (len > 0 && v->path[--len] != '.') continue;
    }
  }
}

/* Says which variables there are. */
static void help_variables(struct resolver *r) {
  enum { SHOWN = 6 };
  struct str s = str_make(r->arena);
  int count = 0;
  for (const struct variable *v = r->variables.first; v; v = v->next) {
    if (!v->trainable || v->run != r->run.number) continue;
    if (count++ < SHOWN) str_printf(&s, "%s%s", count > 1 ? ", " : "", v->path);
  }
  if (count > SHOWN) str_printf(&s, " and %d more", count - SHOWN);
  if (count) report_help(r, "there are %s", s.data);
}

/* One of `over` that means no trained variable. */
static void report_over(struct resolver *r, struct loc loc, const struct value *q) {
  if (q->kind == VALUE_STRING)
    report(r, loc, "no trained variable lies under `%s`", q->string);
  else
    report(r, loc, "`over` takes trained variables or paths to them, not %s", value_describe(r->arena, q));
  for (const struct variable *v = r->variables.first; v && q->kind == VALUE_TENSOR && q->name; v = v->next) {
    size_t n = strlen(q->name);
    if (!v->trainable || v->run != r->run.number || strncmp(v->path, q->name, n) != 0 || v->path[n] != '.')
      continue;
    report_help(r, "the variables of the layer that makes it are `over \"%s\"`", q->name);
    return;
  }
  if (q->kind == VALUE_STRING) help_variables(r);
}

static bool eval_over(struct resolver *r, const struct stmt *s, struct value *over) {
  *over = value_none();
  if (!s->over) return true;
  *over = eval(r, s->over, NULL);
  if (over->kind == VALUE_ERROR) return false;
  if (over->kind != VALUE_LIST) {
    struct value *one = arena_new(r->arena, struct value);
    *one = *over;
    *over = (struct value){.kind = VALUE_LIST, .at = one->at};
    over->list.items = one;
    over->list.count = 1;
  }
  struct map paths = map_make(r->arena);
  choose(r, over, &paths);
  for (int i = 0; i < over->list.count; i++) {
    const struct value *q = &over->list.items[i];
    bool found = q->kind == VALUE_TENSOR && q->tensor.variable;
    if (q->kind == VALUE_STRING) found = map_get(&paths, q->string) != r;
    if (q->kind == VALUE_LAYER) found = map_get(&paths, q->layer->owner) != r;
    if (found) continue;
    report_over(r, over->at, q);
    return false;
  }
  return true;
}

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

/* A variable that a chain trains, and what has come of it so far. */
struct trained {
  struct variable *v;
  struct node *gradient;
  bool left;                /* one of the chain has returned none */
  struct node *when, *step; /* of struct update */
};

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
  r->g->at.loc = c->s->loc;
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
    if (v->trainable && v->run == r->run.number && text_matches(v->path, given->string)) return;
  r->errors.quiet = false;
  diag_warning(r->diags, given->at, "no trained variable is called `%s`", given->string);
  help_variables(r);
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

static void optimize(struct resolver *r, const struct stmt *s, struct node *loss, const char *name) {
  struct value over;
  if (!eval_over(r, s, &over)) return;
  struct influences on = influences(r, loss);
  struct chain c = {.s = s, .trained = arena_new_array(r->arena, (size_t)on.count, struct trained)};
  for (int i = 0; i < on.count; i++) {
    struct variable *v = on.variables[i];
    if (over.kind != VALUE_NONE && v->chosen != r->run.train_statements) continue;
    build_here(r, s->loc);
    r->g->at.loc = s->loc;
    struct node *gradient = build_gradient(r->g, loss, v->node);
    if (gradient) c.trained[c.count++] = (struct trained){.v = v, .gradient = gradient};
  }
  const struct expr **links;
  int count = links_of(s->optimizer, r->arena, &links);
  bool ok = true;
  for (int i = 0; i < count && ok; i++) ok = run_links(r, &c, links[i], name);
  r->update.step = NULL;
  if (!ok || r->budget.stopped) return;
  int before = r->diags->nerrors;
  check_assigned(r, &c);
  bool any = false;
  for (int i = 0; i < c.count; i++) any |= !c.trained[i].left;
  if (any && r->diags->nerrors == before) check_read(r, &c);
  if (any) return;
  if (c.count)
    report(r, s->optimizer->loc, "all variables that this loss depends on are left out");
  else
    report(r, s->value->loc, "this loss depends on no variable%s that can be trained",
           s->over ? " of `over`" : "");
}

/* `mean(loss)` is called loss.mean where `loss` is a value already. */
static void name_loss(struct resolver *r, const struct value *v, uint32_t mark, const char *name,
                      const struct expr *e) {
  if (v->kind != VALUE_TENSOR || v->tensor.node->id < mark || (op_of(v->tensor.node)->traits & OP_NO_CSE))
    return;
  if (graph_rename(r->g, v->tensor.node, name)) return;
  bool called = e->kind == EXPR_CALL && e->base->kind == EXPR_NAME;
  if (called) graph_rename(r->g, v->tensor.node, arena_printf(r->arena, "%s.%s", name, e->base->name));
}

static void report_loss(struct resolver *r, const struct stmt *s, const struct value *v,
                        const struct type *t) {
  const char *text = type_text(r->arena, t), *name = v->name ? v->name : "...";
  if (type_batch_axis(t) >= 0)
    report(r, s->value->loc, "the loss %s%s is not reduced: it is %s, and a loss is one number",
           v->name ? "`" : "", v->name ? arena_printf(r->arena, "%s`", name) : "of this statement", text);
  else
    report(r, s->value->loc, "a loss is a scalar of f32 or f64, not %s", text);
  report_value(r, v);
  if (t->rank)
    report_help(r, "write `mean(%s)`, `sum(%s)`, or with weights `sum_by_nonzero_weights(%s, weights)`", name,
                name, name);
}

void run_train(struct resolver *r, const struct stmt *s) {
  r->run.train_statements++;
  if (r->run.kind == RUN_PREDICT) return;
  const char *saved = r->path, *name = "loss";
  const struct expr *inner = s->value;
  if (inner->kind == EXPR_CALL && inner->items.count == 1) inner = inner->items.first->value;
  if (s->names.count)
    name = s->names.first->text;
  else if (inner->kind == EXPR_NAME)
    name = inner->name;
  r->path = name;
  uint32_t mark = r->g->count;
  struct value v = eval(r, s->value, NULL);
  if (v.kind == VALUE_ERROR) {
    r->path = saved;
    return;
  }
  name_loss(r, &v, mark, name, s->value);
  struct node *loss = tensor_node(r, &v, "a loss");
  if (loss && (loss->type.rank != 0 || !dtype_is_float((enum dtype)loss->type.dtype))) {
    report_loss(r, s, &v, &loss->type);
  } else if (loss && r->run.kind == RUN_EVAL) {
    run_metric(r, name, s->value->loc, &v, true);
  } else if (loss) {
    if (map_get(&r->run.outputs, name)) {
      report(r, s->loc, "two losses are called `%s`", name);
      report_help(r, "name this one: `train other = ...`");
    } else {
      give(r, OUTPUT_LOSS, name, loss, 0);
      optimize(r, s, loss, name);
    }
  }
  r->path = saved;
}

static bool may_write(struct resolver *r, const struct stmt *s, const struct variable *v) {
  int writer = r->frame->function->def->kind == DEF_OPTIMIZER ? r->run.train_statements : 0;
  if (v->trainable && v != r->update.variable) {
    report(r, s->loc, "`%s` is trained: only its optimizer may assign it", v->path);
    report_note(r, v->loc, "declare it with `state` to assign it here");
    return false;
  }
  bool next_call =
      r->turn && v->pending_turn != r->turn && !v->aggregation; /* of a layer, which begins with it */
  if (v->pending && !next_call && (v->writer == writer || v != r->update.variable)) {
    report(r, s->loc, "`%s` is assigned twice in one step", v->path);
    report_note(r, v->pending_loc, "the other assignment is here");
    return false;
  }
  return true;
}

/* What a statement writes into a variable of which there is one value: what the towers have of it, joined. */
static bool written(struct resolver *r, const struct stmt *s, const struct variable *v, struct node **n) {
  if (v->aggregation && !(*n = read_for_tower(r, *n, true, s->value->loc))) return false;
  if (v->on_read) return true; /* each tower writes its own */
  if (!v->aggregation && (*n)->own) {
    report(r, s->value->loc, "`%s` cannot hold what differs from tower to tower", v->path);
    report_note(r, v->loc, "`%s` is declared here", v->path);
    report_help(r, "say there how the towers' values become one: `aggregation(sum)`, `aggregation(mean)` or "
                   "`aggregation(only_first_replica)`");
    return false;
  }
  if (!v->aggregation || (*n)->type.dtype == DT_BOOL) return true;
  struct attr attrs[2] = {attr_string(ATTR_reduction, v->aggregation), attr_int(ATTR_each, 1)};
  const char *name = arena_printf(r->arena, "%s.aggregate", v->path);
  *n = build_named(r->g, name, OP_aggregate, 1, n, s->kind == STMT_ADD ? 2 : 1, attrs, NULL);
  return *n != NULL;
}

static void report_unfit(struct resolver *r, const struct stmt *s, const struct variable *v,
                         const struct type *t) {
  const char *name = s->names.first->text, *how = s->kind == STMT_ADD ? "+=" : "<-";
  bool rows = type_is_symbolic(t) && t->rank > v->type.rank;
  report(r, s->value->loc,
         s->kind == STMT_ADD ? "`%s` is %s, and %s cannot be added to it" : "`%s` is %s and cannot become %s",
         name, type_text(r->arena, &v->type), type_text(r->arena, t));
  report_note(r, v->loc, "`%s` is declared here", v->path);
  if (rows && v->type.rank == 0)
    report_help(r, "a variable is no row of the batch: write `%s %s sum(...)` or `mean(...)`", name, how);
  else if (rows)
    report_help(r, "a variable is no row of the batch: write `%s %s sum(..., axis = 0)` or `mean`", name,
                how);
}

static void becomes(struct resolver *r, const struct stmt *s, struct variable *v, struct node *n) {
  if (!(n = stored_in(r->g, v, n))) return;
  v->pending = n;
  r->effects.count++;
  v->pending_loc = s->loc;
  v->pending_trail = r->g->at.trail;
  v->pending_turn = r->turn;
  v->writer = r->frame->function->def->kind == DEF_OPTIMIZER ? r->run.train_statements : 0;
}

void run_assign(struct resolver *r, const struct stmt *s) {
  const struct name *name = s->names.first;
  struct binding *b = scope_find(r, name->text);
  if (!b) {
    report_unknown(r, name->loc, name->text, false);
    return;
  }
  if (b->value.kind == VALUE_ERROR) return;
  struct variable *v = b->value.kind == VALUE_TENSOR ? b->value.tensor.variable : NULL;
  if (!v) {
    report(r, name->loc, "`%s` is no variable: `%s` changes variables, `=` binds a name", name->text,
           s->kind == STMT_ADD ? "+=" : "<-");
    report_note(r, b->loc, "it is bound here");
    if (s->kind == STMT_ADD) report_help(r, "write `%s = %s + ...`", name->text, name->text);
    return;
  }
  if (r->run.kind != RUN_TRAIN || !may_write(r, s, v)) return;
  if (r->g == r->init) {
    report(r, s->loc, "`%s` cannot be assigned where another variable gets its first value", v->path);
    return;
  }
  const char *saved = r->path;
  r->path = binding_path(r, name->text);
  struct value new = eval(r, s->value, NULL);
  build_here(r, s->value->loc);
  struct node *n = new.kind == VALUE_ERROR ? NULL : value_node(r, &new, (enum dtype)v->type.dtype);
  bool scalar = n && n->type.rank == 0 && n->type.dtype == v->type.dtype;
  if (n && !scalar && !type_equal(&n->type, &v->type)) {
    report_unfit(r, s, v, &n->type);
    n = NULL;
  }
  if (n && !written(r, s, v, &n)) n = NULL;
  if (n) n = build_broadcast_to(r->g, n, &v->type);
  if (n && s->kind == STMT_ADD)
    n = build2(r->g, OP_add, v->master ? variable_now(r, v) : b->value.tensor.node, n);
  if (n && r->update.when) { /* an optimizer that does not act in each step */
    struct type flags = type_with_dtype(v->type, DT_BOOL);
    struct node *when = build_broadcast_to(r->g, r->update.when, &flags);
    n = build3(r->g, OP_select, when, n, variable_now(r, v));
  }
  if (n && v->master) becomes(r, s, v->master, n);
  if (n) becomes(r, s, v, n);
  r->path = saved;
}

void finish_updates(struct resolver *r) {
  struct graph *g = r->g;
  if (!g->noutputs) return;
  struct value step = step_value(r);
  g->at.scope = STEP_VARIABLE;
  if (r->variables.step && step.kind == VALUE_TENSOR && !r->variables.step->pending) {
    g->at.loc = r->variables.step->pending_loc = r->variables.step->loc;
    g->at.trail = r->variables.step->pending_trail = NULL;
    r->variables.step->pending = build2(g, OP_add, step.tensor.node, build_scalar(g, DT_I64, 1));
  }
  for (struct variable *v = r->variables.first; v; v = v->next) {
    if (v->run != r->run.number || !v->pending) continue;
    g->at.scope = v->path;
    g->at.loc = v->pending_loc;
    g->at.trail = v->pending_trail;
    struct node *n = build_assign(g, v->node, v->pending);
    if (n) graph_add_output(g, OUTPUT_UPDATE, n->name, n, 0);
  }
}

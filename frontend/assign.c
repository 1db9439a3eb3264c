/* SPDX-License-Identifier: Apache-2.0 */
/* Assignments: what a statement of a layer or an optimizer writes into a variable, and what a step leaves in all.
 *
 * A variable has one writer per step. When two train statements change the same variable, the second optimizer starts
 * from what the first one leaves. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

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

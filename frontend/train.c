/* Training: which variables a loss trains, the optimizer's run for each, and the assignments of a step.
 *
 * A variable has one writer per step. When two train statements change the same variable, the second
 * optimizer starts from what the first one leaves. */
#include "frontend/resolve.h"

#include <string.h>

/* One byte per node: the loss can change when it does. */
static uint8_t *influences(struct resolver *r, struct node *loss) {
  uint8_t *seen = arena_alloc(r->arena, r->g->count);
  struct node **stack = arena_new_array(r->arena, r->g->count, struct node *);
  uint32_t n = 0;
  stack[n++] = loss;
  seen[loss->id] = 1;
  while (n) {
    const struct node *q = stack[--n];
    if (op_of(q)->traits & OP_NO_GRADIENT) continue;
    for (int i = 0; i < q->ninputs; i++)
      if (!seen[q->inputs[i]->id]) {
        seen[q->inputs[i]->id] = 1;
        stack[n++] = q->inputs[i];
      }
  }
  return seen;
}

static bool under(const char *path, const char *prefix) {
  size_t n = strlen(prefix);
  return strncmp(path, prefix, n) == 0 && (path[n] == 0 || path[n] == '.');
}

/* Is v meant by `over`: a list of variables and of paths that variables lie under? */
static bool chosen(const struct value *over, const struct variable *v) {
  if (over->kind == VALUE_NONE) return true;
  for (int i = 0; i < over->list.count; i++) {
    const struct value *q = &over->list.items[i];
    if (q->kind == VALUE_TENSOR && q->tensor.variable == v) return true;
    if (q->kind == VALUE_STRING && under(v->path, q->string)) return true;
  }
  return false;
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
  for (int i = 0; i < over->list.count; i++) {
    const struct value *q = &over->list.items[i];
    bool found = q->kind == VALUE_TENSOR && q->tensor.variable;
    if (q->kind == VALUE_STRING)
      for (const struct variable *v = r->first_variable; v && !found; v = v->next)
        found = v->trainable && under(v->path, q->string);
    if (found) continue;
    report(r, over->at, "`over` takes trained variables or paths to them, not %s",
           value_describe(r->arena, q));
    return false;
  }
  return true;
}

static const struct function *optimizer_of(struct resolver *r, const struct expr *call,
                                           struct value *callee) {
  *callee = call->base->kind == EXPR_NAME ? lookup(r, call->base->name, true) : eval(r, call->base, NULL);
  if (callee->kind == VALUE_FUNCTION && callee->function->def->kind == DEF_OPTIMIZER) return callee->function;
  if (callee->kind == VALUE_ERROR) {
    if (call->base->kind == EXPR_NAME) report_unknown(r, call->base->loc, call->base->name, true);
    return NULL;
  }
  report(r, call->base->loc, "behind `with` stands an optimizer, not %s", value_describe(r->arena, callee));
  return NULL;
}

static void optimize(struct resolver *r, const struct stmt *s, struct node *loss, const char *name) {
  const struct expr *e = s->optimizer;
  struct expr bare = {.kind = EXPR_CALL, .base = (struct expr *)(uintptr_t)e, .loc = e->loc};
  const struct expr *call = e->kind == EXPR_CALL ? e : &bare;
  struct value callee, over;
  const struct function *f = optimizer_of(r, call, &callee);
  if (!f) return;
  struct value *args = arena_new_array(r->arena, (size_t)f->def->params.count + 1, struct value);
  r->path = arena_printf(r->arena, "%s.%s", name, f->def->name);
  if (!eval_args(r, call, &callee, NULL, args) || !eval_over(r, s, &over)) return;

  const uint8_t *trains = influences(r, loss);
  uint32_t count = r->g->count;
  int trained = 0;
  for (struct variable *v = r->first_variable; v; v = v->next) {
    if (v->run != r->runs || !v->trainable || !chosen(&over, v)) continue;
    if (v->node->id >= count || !trains[v->node->id]) continue;
    trained++;
    build_here(r, s->loc);
    r->g->loc = s->loc;
    r->updating = v;
    r->gradient = build_gradient(r->g, loss, v->node);
    uint32_t before = (uint32_t)r->diags->nerrors;
    call_function(r, f, args, call->loc, arena_printf(r->arena, "%s.%s", v->path, f->def->name));
    r->updating = NULL;
    if ((uint32_t)r->diags->nerrors > before) return;
  }
  if (trained) return;
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
  r->train_statements++;
  if (r->run == RUN_PREDICT) return;
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
  } else if (loss && r->run == RUN_EVAL) {
    run_metric(r, name, s->value->loc, &v);
  } else if (loss) {
    bool twice = false;
    for (int i = 0; i < r->g->noutputs; i++) twice |= strcmp(r->g->outputs[i].name, name) == 0;
    if (twice) {
      report(r, s->loc, "two losses are called `%s`", name);
      report_help(r, "name this one: `train other = ...`");
    } else {
      graph_add_output(r->g, OUTPUT_LOSS, name, loss, 0);
      optimize(r, s, loss, name);
    }
  }
  r->path = saved;
}

static bool may_write(struct resolver *r, const struct stmt *s, const struct variable *v) {
  int writer = r->frame->function->def->kind == DEF_OPTIMIZER ? r->train_statements : 0;
  if (v->trainable && v != r->updating) {
    report(r, s->loc, "`%s` is trained: only its optimizer may assign it", v->path);
    report_note(r, v->loc, "declare it with `state` to assign it here");
    return false;
  }
  if (v->pending && (v->writer == writer || v != r->updating)) {
    report(r, s->loc, "`%s` is assigned twice in one step", v->path);
    report_note(r, v->pending_loc, "the other assignment is here");
    return false;
  }
  return true;
}

static bool depends_on_tower(struct resolver *r, const struct node *n) {
  uint8_t *seen = arena_alloc(r->arena, r->g->count);
  const struct node **stack = arena_new_array(r->arena, r->g->count, const struct node *);
  uint32_t k = 0;
  stack[k++] = n;
  seen[n->id] = 1;
  while (k) {
    const struct node *q = stack[--k];
    if (q->op == OP_tower_id) return true;
    for (int i = 0; q->op != OP_aggregate && i < q->ninputs; i++)
      if (!seen[q->inputs[i]->id]) {
        seen[q->inputs[i]->id] = 1;
        stack[k++] = q->inputs[i];
      }
  }
  return false;
}

/* What a statement writes into a variable of which there is one value: what the towers have of it, joined. */
static bool written(struct resolver *r, const struct stmt *s, const struct variable *v, struct node **n) {
  if (v->on_read) return true; /* each tower writes its own */
  if (!v->aggregation && depends_on_tower(r, *n)) {
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
    return;
  }
  if (r->run != RUN_TRAIN || !may_write(r, s, v)) return;
  const char *saved = r->path;
  r->path = binding_path(r, name->text);
  struct value new = eval(r, s->value, NULL);
  build_here(r, s->value->loc);
  struct node *n = new.kind == VALUE_ERROR ? NULL : value_node(r, &new, (enum dtype)v->type.dtype);
  if (n && !written(r, s, v, &n)) n = NULL;
  if (n && n->type.rank == 0 && n->type.dtype == v->type.dtype) n = build_broadcast_to(r->g, n, &v->type);
  if (n && s->kind == STMT_ADD && type_equal(&n->type, &v->type)) n = build2(r->g, OP_add, v->node, n);
  if (n && !type_equal(&n->type, &v->type)) {
    report(r, s->value->loc, "`%s` is %s and cannot become %s", name->text, type_text(r->arena, &v->type),
           type_text(r->arena, &n->type));
    report_note(r, v->loc, "`%s` is declared here", v->path);
  } else if (n) {
    v->pending = n;
    v->pending_loc = s->loc;
    v->pending_trail = r->g->trail;
    v->writer = r->frame->function->def->kind == DEF_OPTIMIZER ? r->train_statements : 0;
  }
  r->path = saved;
}

void finish_updates(struct resolver *r) {
  struct graph *g = r->g;
  if (!g->noutputs) return;
  struct value step = step_value(r);
  g->scope = "step";
  if (r->step && step.kind == VALUE_TENSOR && !r->step->pending) {
    g->loc = r->step->pending_loc = r->step->loc;
    g->trail = r->step->pending_trail = NULL;
    r->step->pending = build2(g, OP_add, step.tensor.node, build_scalar(g, DT_I64, 1));
  }
  for (struct variable *v = r->first_variable; v; v = v->next) {
    if (v->run != r->runs || !v->pending) continue;
    g->scope = v->path;
    g->loc = v->pending_loc;
    g->trail = v->pending_trail;
    struct node *n = build_assign(g, v->node, v->pending);
    if (n) graph_add_output(g, OUTPUT_UPDATE, n->name, n, 0);
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Training: a loss, and which variables it trains. */
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
  if (q->kind == VALUE_STRING) help_trained(r);
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

static void optimize(struct resolver *r, const struct stmt *s, struct node *loss, const char *name) {
  struct value over;
  if (!eval_over(r, s, &over)) return;
  struct influences on = influences(r, loss);
  struct trained *trained = arena_new_array(r->arena, (size_t)on.count, struct trained);
  int count = 0;
  for (int i = 0; i < on.count; i++) {
    struct variable *v = on.variables[i];
    if (over.kind != VALUE_NONE && v->chosen != r->run.train_statements) continue;
    build_here(r, s->loc);
    struct node *gradient = build_gradient(r->g, loss, v->node);
    if (gradient) trained[count++] = (struct trained){.v = v, .gradient = gradient};
  }
  bool trains = false;
  if (!run_optimizers(r, s, name, trained, count, &trains) || trains) return;
  if (count)
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

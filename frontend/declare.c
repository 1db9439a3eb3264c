/* Inputs, variables and data files. */
#include "frontend/resolve.h"

#include <string.h>

const char *binding_path(struct resolver *r, const char *name) {
  const struct frame *f = r->frame;
  return arena_printf(r->arena, "%s%s%s%s", f->path, *f->path ? "." : "", name, f->suffix);
}

void declare_input(struct resolver *r, const struct stmt *s) {
  const struct name *name = s->names.first;
  struct type t;
  bool ok = eval_type(r, s->type, &t);
  if (ok && (t.rank == 0 || t.dim[0] != -1)) {
    report(r, s->type->loc, "an input begins with the batch axis B, not %s", type_text(r->arena, &t));
    report_help(r, "write `%s[B, ...]`", dtype_name((enum dtype)t.dtype));
    ok = false;
  }
  if (!ok) {
    bind(r, name->text, name->loc, value_error(), true);
    return;
  }
  r->g->loc = name->loc;
  struct value v = value_tensor(r, build_input(r->g, name->text, &t), s->loc);
  v.name = name->text;
  v.decl = name->loc;
  bind(r, name->text, name->loc, v, true);
  struct model *m = r->model;
  for (int i = 0; i < m->ninputs; i++)
    if (strcmp(m->inputs[i].name, name->text) == 0) return;
  struct model_input *more = arena_new_array(r->arena, (size_t)m->ninputs + 1, struct model_input);
  if (m->ninputs) memcpy(more, m->inputs, sizeof *more * (size_t)m->ninputs);
  more[m->ninputs++] = (struct model_input){.name = name->text, .type = t, .loc = name->loc, .high = -1};
  m->inputs = more;
}

/* Builds the first value in the init graph. */
static void initialize(struct resolver *r, struct variable *v, const struct expr *value) {
  struct graph *g = r->g;
  const char *path = r->path;
  r->g = r->init;
  r->init->want = g->want;
  r->declaring = &v->type;
  r->path = arena_printf(r->arena, "%s.initial", v->path);
  r->init->scope = r->path;
  r->init->loc = value->loc;
  struct node *variable = build_variable(r->init, v->path, &v->type, v->trainable, v->slot);
  uint32_t mark = r->init->count;
  struct value first = eval(r, value, NULL);
  struct node *n = NULL;
  if (first.kind != VALUE_ERROR) {
    n = value_node(r, &first, (enum dtype)v->type.dtype);
    if (n && n->type.rank == 0 && n->type.dtype == v->type.dtype)
      n = build_broadcast_to(r->init, n, &v->type);
    if (n && !type_equal(&n->type, &v->type)) {
      report(r, value->loc, "`%s` is %s, but its first value is %s", v->path, type_text(r->arena, &v->type),
             type_text(r->arena, &n->type));
      report_note(r, v->loc, "it is declared here");
      n = NULL;
    }
  }
  if (n) {
    if (n->id >= mark && !(op_of(n)->traits & OP_NO_CSE)) graph_rename(r->init, n, r->path);
    r->init->loc = v->loc;
    struct node *assign = build_assign(r->init, variable, n);
    if (assign) graph_add_output(r->init, OUTPUT_UPDATE, assign->name, assign, 0);
  }
  r->declaring = NULL;
  r->g = g;
  r->path = path;
}

static struct variable *variable_at(struct resolver *r, const char *path, const struct type *t,
                                    bool trainable, bool slot, struct loc loc, const struct expr *value) {
  struct variable *v = map_get(&r->variables, path);
  if (v && v->run == r->runs) {
    report(r, loc, "two variables would be called `%s`", path);
    report_note(r, v->loc, "the other one is declared here");
    report_help(r, "bind the two values to different names");
    return NULL;
  }
  if (v && !type_equal(&v->type, t)) {
    report(r, loc, "`%s` is %s in evaluation, but %s in training", path, type_text(r->arena, t),
           type_text(r->arena, &v->type));
    return NULL;
  }
  bool is_new = !v;
  if (is_new) {
    v = arena_new(r->arena, struct variable);
    *v = (struct variable){.path = path, .type = *t, .trainable = trainable, .slot = slot, .loc = loc};
    map_put(&r->variables, path, v);
    *r->last_variable = v;
    r->last_variable = &v->next;
  }
  v->run = r->runs;
  v->pending = NULL;
  v->writer = 0;
  r->g->loc = loc;
  v->node = build_variable(r->g, path, t, trainable, slot);
  if (v->node && strcmp(v->node->name, path) != 0) {
    report(r, loc, "the variable cannot be called `%s`: another value is called so", path);
    return NULL;
  }
  if (is_new && value) initialize(r, v, value);
  return v->node ? v : NULL;
}

void declare_variable(struct resolver *r, const struct stmt *s) {
  const struct name *name = s->names.first;
  bool slot = r->frame->function->def->kind == DEF_OPTIMIZER;
  bool trainable = s->kind == STMT_VAR && !slot;
  struct type t;
  struct variable *v = NULL;
  bool ok = eval_type(r, s->type, &t);
  if (ok && type_is_symbolic(&t)) {
    report(r, s->type->loc, "a variable cannot depend on the batch: %s", type_text(r->arena, &t));
    ok = false;
  }
  if (ok && trainable && !dtype_is_float((enum dtype)t.dtype)) {
    report(r, s->type->loc, "a trained variable must be f32 or f64, not %s", type_text(r->arena, &t));
    if (r->frame->function->def->kind == DEF_MODEL)
      report_help(r, "declare it with `state`: it is then only changed by `<-`");
    else
      report_help(
          r, "a layer's input can be converted first, as in `cast(x, f32)`; what is only changed by `<-` "
             "is declared with `state`");
    ok = false;
  }
  if (ok && r->frame->function->def->kind == DEF_FUNCTION) {
    report(r, s->loc, "a function has no variables; make it a layer");
    ok = false;
  }
  if (ok) v = variable_at(r, binding_path(r, name->text), &t, trainable, slot, name->loc, s->value);
  struct value value = v ? value_tensor(r, v->node, name->loc) : value_error();
  value.name = name->text;
  value.decl = name->loc;
  if (v) value.tensor.variable = v;
  bind(r, name->text, name->loc, value, true);
}

/* `step`: how many training steps have been done. */
struct value step_value(struct resolver *r) {
  struct type t = type_scalar(DT_I64);
  if (r->g == r->init) {
    struct build_context saved = build_save(r->init);
    r->init->scope = "step.initial";
    struct node *zero = build_scalar(r->init, DT_I64, 0);
    build_restore(r->init, &saved);
    return value_tensor(r, zero, LOC_NONE);
  }
  if (!r->step || r->step->run != r->runs) {
    struct build_context saved = build_save(r->g);
    r->g->want = NULL;
    bool is_new = !r->step;
    r->step = variable_at(r, "step", &t, false, false, LOC_NONE, NULL);
    if (r->step && is_new) {
      r->init->want = NULL;
      r->init->scope = "step.initial";
      r->init->loc = LOC_NONE;
      struct node *n = build_variable(r->init, "step", &t, false, false);
      struct node *assign = build_assign(r->init, n, build_scalar(r->init, DT_I64, 0));
      graph_add_output(r->init, OUTPUT_UPDATE, assign->name, assign, 0);
    }
    build_restore(r->g, &saved);
    if (!r->step) return value_error();
  }
  struct value v = value_tensor(r, r->step->node, LOC_NONE);
  v.name = "step";
  return v;
}

void declare_data(struct resolver *r, const struct stmt *s) {
  struct model *m = r->model;
  const char *split = s->names.first->text;
  if (strcmp(split, "train") != 0 && strcmp(split, "test") != 0) {
    report(r, s->names.first->loc, "data is for `train` or `test`, not `%s`", split);
    return;
  }
  if (r->run != RUN_TRAIN) return;
  for (const struct arg *a = s->entries.first; a; a = a->next) {
    const char *path;
    if (!eval_string(r, a->value, "a data file", &path)) continue;
    const struct model_input *in = NULL;
    for (int i = 0; i < m->ninputs && !in; i++)
      if (strcmp(m->inputs[i].name, a->name) == 0) in = &m->inputs[i];
    if (!in && !scope_find(r, a->name)) {
      report(r, a->loc, "there is no input `%s`", a->name);
      const char **names = arena_new_array(r->arena, (size_t)m->ninputs, const char *);
      for (int i = 0; i < m->ninputs; i++) names[i] = m->inputs[i].name;
      report_closest(r, a->name, names, (size_t)m->ninputs);
      continue;
    }
    bool twice = false;
    for (int i = 0; i < m->ndata && !twice; i++)
      if (strcmp(m->data[i].split, split) == 0 && strcmp(m->data[i].input, a->name) == 0) {
        report(r, a->loc, "`%s` has %s data already", a->name, split);
        report_note(r, m->data[i].loc, "it is given here");
        twice = true;
      }
    if (twice) continue;
    struct model_data *more = arena_new_array(r->arena, (size_t)m->ndata + 1, struct model_data);
    if (m->ndata) memcpy(more, m->data, sizeof *more * (size_t)m->ndata);
    more[m->ndata++] =
        (struct model_data){split, a->name, path, resolve_path(r, a->loc.source, path), a->loc};
    m->data = more;
  }
}

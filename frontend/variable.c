/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: their declarations, their first values, and `step`, which every model may read. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <string.h>

void help_trained(struct resolver *r) {
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

static struct node *variable_node(struct graph *g, const struct variable *v) {
  struct attr attrs[5];
  int n = 0;
  if (v->trainable) attrs[n++] = attr_int(ATTR_trainable, 1);
  if (v->slot) attrs[n++] = attr_string(ATTR_slot, v->slot);
  if (v->aggregation) attrs[n++] = attr_string(ATTR_aggregation, v->aggregation);
  if (v->on_read) attrs[n++] = attr_string(ATTR_synchronization, "on_read");
  if (v->storage) attrs[n++] = attr_string(ATTR_storage, dtype_name(v->storage));
  return build_named(g, v->path, OP_variable, 0, NULL, n, attrs, &v->type);
}

/* What each tower's copy begins with: together they are the first value. */
static struct node *share_of(struct graph *g, const struct variable *v, struct node *n) {
  if (!v->on_read || strcmp(v->aggregation, "sum") != 0) return n;
  struct type scalar = type_scalar((enum dtype)v->type.dtype);
  if (dtype_is_float((enum dtype)v->type.dtype)) {
    struct node *towers = build(g, OP_tower_count, 0, NULL, 0, NULL, &scalar);
    return build2(g, OP_div, n, build_broadcast_to(g, towers, &v->type));
  }
  struct node *tower = build(g, OP_tower_id, 0, NULL, 0, NULL, &scalar);
  struct node *first = build2(g, OP_eq, tower, build_scalar(g, (enum dtype)v->type.dtype, 0));
  struct type flags = type_with_dtype(v->type, DT_BOOL);
  first = build_broadcast_to(g, first, &flags);
  return build3(g, OP_select, first, n, build_fill(g, &v->type, 0));
}

struct node *stored_in(struct graph *g, const struct variable *v, struct node *n) {
  return n ? build_rounded(g, n, v->storage) : NULL;
}

/* A master that the variable is not the rounded value of is another training's: it begins anew with the variable. */
struct node *variable_now(struct resolver *r, const struct variable *v) {
  const struct variable *m = v->master;
  if (!m) return v->pending ? v->pending : v->node;
  if (m->pending) return m->pending;
  struct node *near = stored_in(r->g, v, m->node);
  struct node *same = near ? build2(r->g, OP_eq, near, v->node) : NULL;
  return same ? build3(r->g, OP_select, same, m->node, v->node) : NULL;
}

/* Notes whose first value the variable's, which is `n`, was made of. */
static void note_start(struct resolver *r, const struct variable *v, const struct node *n) {
  const struct variable *of = r->first_value.read;
  const struct node *update = graph_find(r->init, arena_printf(r->arena, "%s.update", of->path));
  const struct node *first = v->masters ? of->unrounded : update->inputs[1];
  while (n != first && node_is(n, OP_cast)) n = n->inputs[0];
  struct model_start *start = arena_new(r->arena, struct model_start);
  *start =
      (struct model_start){.name = v->path, .of = of->path, .unrounded = v->masters, .computed = n != first};
  *r->variables.last_start = start;
  r->variables.last_start = &start->next;
}

/* Builds the first value in the init graph. */
static void initialize(struct resolver *r, struct variable *v, const struct expr *value) {
  struct graph *g = r->g;
  const char *path = r->path;
  r->g = r->init;
  r->init->at.want = g->at.want;
  r->first_value = (struct first_value){.type = &v->type, .of_master = v->masters};
  r->path = arena_printf(r->arena, "%s.initial", v->path);
  r->init->at.scope = r->path;
  r->init->at.loc = value->loc;
  struct node *variable = variable_node(r->init, v);
  uint32_t mark = r->init->count;
  struct value first = eval(r, value, NULL);
  struct node *n = NULL;
  if (first.kind == VALUE_FUNCTION && first.function->def->kind == DEF_INITIALIZER) {
    report(r, value->loc, "a first value is what a call of an initializer gives");
    report_help(r, "write `%s()`", first.function->def->name);
  } else if (first.kind != VALUE_ERROR) {
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
    r->init->at.loc = v->loc;
    if (r->first_value.read) note_start(r, v, n);
    v->unrounded = share_of(r->init, v, n);
    n = stored_in(r->init, v, v->unrounded);
    struct node *assign = build_assign(r->init, variable, n);
    if (assign) graph_add_output(r->init, OUTPUT_UPDATE, assign->name, assign, 0);
  } else if (!any_errors(r) && !r->built.first) {
    report(r, value->loc, "the first value of `%s` has come to nothing, which is a mistake of dgc's",
           v->path);
  }
  r->first_value = (struct first_value){0};
  r->g = g;
  r->path = path;
}

/* In one run: a second declaration of the same path is the first one's variable, or an error. */
static struct variable *variable_again(struct resolver *r, struct variable *v, const struct variable *as) {
  if (is_declared_again(r, v, as->loc)) {
    if (type_equal(&v->type, &as->type)) return v;
    report(r, as->loc, "`%s` is %s in this call, and %s in the calls before it", v->path,
           type_text(r->arena, &as->type), type_text(r->arena, &v->type));
    report_help(r, "a layer that is made once takes what has the same sizes each time");
    return NULL;
  }
  report(r, as->loc, "two variables would be called `%s`", v->path);
  report_note(r, v->loc, "the other one is declared here");
  if (as->slot)
    report_help(r,
                "two train statements change `%s` by such an optimizer: `train a + 0.5 * b with ...` "
                "trains by both "
                "losses, `over` says what each trains",
                as->slot);
  else
    report_help(r, "bind the two values to different names");
  return NULL;
}

static struct variable *variable_new(struct resolver *r, const char *path, const struct variable *as) {
  struct variable *v = arena_new(r->arena, struct variable);
  *v = *as;
  v->path = path;
  v->order = (int)r->variables.by_path.count;
  map_put(&r->variables.by_path, path, v);
  *r->variables.last = v;
  r->variables.last = &v->next;
  return v;
}

/* Its node in the graph of this run. */
static bool variable_enter(struct resolver *r, struct variable *v, struct loc loc) {
  v->run = r->run.number;
  v->turn = r->turn;
  v->pending = NULL;
  v->master = NULL;
  v->writer = 0;
  r->g->at.loc = loc;
  const struct variable *read = r->run.kind != RUN_TRAIN && v->replaced ? v->replaced : v;
  v->node = variable_node(r->g, read);
  if (!v->node || strcmp(v->node->name, read->path) == 0) return true;
  report(r, loc, "the variable cannot be called `%s`: another value is called so", v->path);
  return false;
}

static struct variable *variable_at(struct resolver *r, const char *path, const struct variable *as,
                                    const struct expr *value) {
  struct variable *v = map_get(&r->variables.by_path, path);
  if (v && v->run == r->run.number) return variable_again(r, v, as);
  if (v && !type_equal(&v->type, &as->type)) {
    report(r, as->loc, "`%s` is %s in evaluation, but %s in training", path, type_text(r->arena, &as->type),
           type_text(r->arena, &v->type));
    return NULL;
  }
  bool is_new = !v;
  if (is_new) v = variable_new(r, path, as);
  if (!variable_enter(r, v, as->loc)) return NULL;
  if (is_new && value) initialize(r, v, value);
  return v->node ? v : NULL;
}

/* aggregation(sum), synchronization(on_read): what the attribute of this name has words for. */
static const struct trait {
  const char *name;
  enum attr_key key;
  const char *without; /* the word for a variable that has no such attribute */
  const char *words;   /* all of them, for help */
} aggregation = {"aggregation", ATTR_aggregation, "none", "it is none, sum, mean or only_first_replica"},
  synchronization = {"synchronization", ATTR_synchronization, "on_write", "it is on_write or on_read"};

/* One that is given, if it was not before: *word is NULL where it stands for none. */
static bool eval_trait(struct resolver *r, const struct trait *t, const struct arg *a, bool *given,
                       const char **word) {
  *word = strcmp(a->value->name, t->without) == 0 ? NULL : a->value->name;
  if (*word && !attr_has_word(t->key, *word)) {
    report(r, a->value->loc, "there is no %s `%s`", t->name, *word);
    report_help(r, "%s", t->words);
    return false;
  }
  if (*given) {
    report(r, a->loc, "the %s is given twice", t->name);
    return false;
  }
  *given = true;
  return true;
}

/* replaces(variable), masters(variable): of what an optimizer keeps. */
static bool eval_stands_for(struct resolver *r, const struct arg *a, const struct variable *v, bool *stands) {
  if (v->slot && strcmp(a->value->name, "variable") == 0) return *stands = true;
  report(r, a->loc, "only what an optimizer keeps %s a variable: `%s(variable)`", a->name, a->name);
  return false;
}

static bool no_such_trait(struct resolver *r, const struct arg *a) {
  static const char *const traits[] = {"aggregation", "synchronization", "storage"};
  report(r, a->loc, "a variable has an aggregation, a synchronization and a storage, and no `%s`", a->name);
  report_closest(r, a->name, traits, 3);
  return false;
}

/* Whether what is given belongs together. */
static bool check_traits(struct resolver *r, const struct stmt *s, const struct variable *v) {
  if (v->on_read && !v->aggregation) {
    report(r, s->loc, "`%s` is joined when it is read, and nothing says how", s->names.first->text);
    report_help(r, "add `aggregation(sum)`, `aggregation(mean)` or `aggregation(only_first_replica)`");
    return false;
  }
  if (!v->aggregation || (s->kind == STMT_STATE && !v->slot) || (v->on_read && !v->slot)) return true;
  report(r, s->loc, "only an optimizer writes `%s`, the same in all towers: there is nothing to aggregate",
         s->names.first->text);
  report_help(r, "declare it with `state` if the model is to write it");
  return false;
}

static bool eval_traits(struct resolver *r, const struct stmt *s, struct variable *out) {
  bool aggregated = false, synchronized = false, good = true;
  const char *word;
  for (const struct arg *a = s->entries.first; good && a; a = a->next) {
    if (strcmp(a->name, "replaces") == 0) {
      good = eval_stands_for(r, a, out, &out->replaces);
    } else if (strcmp(a->name, "masters") == 0) {
      good = eval_stands_for(r, a, out, &out->masters);
    } else if (strcmp(a->name, aggregation.name) == 0) {
      good = eval_trait(r, &aggregation, a, &aggregated, &word);
      if (good) out->aggregation = word;
    } else if (strcmp(a->name, synchronization.name) == 0) {
      good = eval_trait(r, &synchronization, a, &synchronized, &word);
      if (good) out->on_read = word != NULL;
    } else if (strcmp(a->name, "storage") != 0) { /* see eval_storage */
      good = no_such_trait(r, a);
    }
  }
  return good && check_traits(r, s, out);
}

/* storage(bf16), storage(f16), or storage(f32), which is what there is without; or a name that stands for one. */
static bool eval_storage(struct resolver *r, const struct stmt *s, struct variable *out) {
  const struct arg *given = NULL;
  for (const struct arg *a = s->entries.first; a; a = a->next) {
    if (strcmp(a->name, "storage") != 0) continue;
    if (given) {
      report(r, a->loc, "the storage is given twice");
      return false;
    }
    given = a;
    struct value v = eval(r, a->value, NULL);
    if (!read_storage(r, &v, &out->storage)) return false;
  }
  if (!out->storage || (out->type.dtype == DT_F32 && !out->on_read)) return true;
  if (out->on_read)
    report(r, given->loc, "copies of towers that are joined when they are read are stored in f32");
  else
    report(r, given->loc, "what is stored in %s is f32 where it is read, not %s", dtype_name(out->storage),
           type_text(r->arena, &out->type));
  return false;
}

/* A mistake in some number above, which would come up again in whatever is made of the variable. */
static bool has_elements(struct resolver *r, const struct stmt *s, const struct type *t) {
  int axis = 0;
  while (axis < t->rank && t->dim[axis] != 0) axis++;
  if (axis == t->rank) return true;
  report(r, s->type->loc, "variable `%s` is %s and holds nothing", variable_path(r, s->names.first->text),
         type_text(r->arena, t));
  for (const struct arg *a = s->type->items.first; a && s->type->kind == EXPR_INDEX && !r->errors.quiet;
       a = a->next) {
    struct value v = eval(r, a->value->kind == EXPR_REST ? a->value->lhs : a->value, NULL);
    if (v.kind == VALUE_INT && v.i == 0) report_number(r, &v);
  }
  report_help(r, "each axis of a variable has a length of at least 1");
  return false;
}

/* Whether the state `v` of the optimizer that runs can stand for the variable, as it says. */
static bool stands_for_variable(struct resolver *r, const struct stmt *s, const struct variable *v) {
  const struct variable *of = r->update.variable, *other = v->masters ? of->master : of->replaced;
  const char *what = v->masters ? "master" : "replace";
  if (v->masters && of->pending && of->writer == r->run.train_statements) {
    report(r, s->loc, "`%s` is no master of `%s`, which has changed already", v->path, of->path);
    report_note(r, of->pending_loc, "it is assigned here");
    report_help(r, "a master stands before what changes the variable, as in `[master(), adam()]`");
    return false;
  }
  if (!other && type_equal(&v->type, &of->type)) return true;
  report(r, s->loc, "`%s` cannot %s `%s`: %s", v->path, what, of->path,
         other ? "something else does" : "its type is another");
  return false;
}

/* What is not rounded is its own master. */
static void bind_itself(struct resolver *r, const struct name *name) {
  struct value v = value_tensor(r, r->update.variable->node, name->loc);
  v.tensor.variable = r->update.variable;
  bind(r, name->text, name->loc, v, true, false);
}

static bool check_constant_size(struct resolver *r, const struct stmt *s, const struct type *t) {
  if (!type_is_symbolic(t) && !type_has_whole(t)) return true;
  report(r, s->type->loc, "a variable cannot depend on the batch: %s", type_text(r->arena, t));
  if (r->errors.inside)
    report_help(r, "of what is one number of each row, f32[B], `expand(x, 1)` makes f32[B,1]");
  return false;
}

/* Whether the towers' values of v can become one as it says. */
static bool check_aggregation(struct resolver *r, const struct stmt *s, const struct variable *v) {
  const char *how = v->aggregation;
  if (how && v->type.dtype == DT_BOOL && strcmp(how, "only_first_replica") != 0) {
    report(r, s->type->loc, "the values of towers have no %s where they are bool", how);
    report_help(
        r, "declare it i32, and assign `cast(x, i32)`: of several towers `sum` counts those that have 1");
    return false;
  }
  if (how && dtype_is_int((enum dtype)v->type.dtype) && strcmp(how, "mean") == 0) {
    report(r, s->type->loc, "the mean of integers is no integer: %s cannot hold that of the towers' values",
           type_text(r->arena, &v->type));
    report_help(r, "declare it f32 or f64, and assign `cast(x, f32)`; `aggregation(sum)` adds integers up");
    return false;
  }
  return true;
}

static bool check_trainable(struct resolver *r, const struct stmt *s, const struct variable *v) {
  if (!v->trainable || dtype_is_float((enum dtype)v->type.dtype)) return true;
  report(r, s->type->loc, "a trained variable must be f32 or f64, not %s", type_text(r->arena, &v->type));
  if (r->frame->function->def->kind == DEF_MODEL)
    report_help(r, "declare it with `state`: it is then only changed by `<-`");
  else
    report_help(
        r, "a layer's input can be converted first, as in `cast(x, f32)`, and then divided: `cast(x, f32) / "
           "255`; what is only changed by `<-` is declared with `state`");
  return false;
}

static bool check_owner(struct resolver *r, const struct stmt *s) {
  if (r->frame->function->def->kind != DEF_FUNCTION) return true;
  report(r, s->loc, "a function has no variables; make it a layer");
  return false;
}

/* What the statement says of the variable, into *out; false after an error. */
static bool read_declaration(struct resolver *r, const struct stmt *s, struct variable *out) {
  struct type t;
  bool ok = eval_type(r, s->type, &t);
  if (!eval_traits(r, s, out) || !ok) return false;
  out->trainable = s->kind == STMT_VAR && !out->slot && !out->on_read;
  out->type = t;
  return check_constant_size(r, s, &t) && check_aggregation(r, s, out) && check_trainable(r, s, out) &&
         check_owner(r, s) && has_elements(r, s, &t) && eval_storage(r, s, out);
}

void declare_variable(struct resolver *r, const struct stmt *s) {
  const struct name *name = s->names.first;
  const char *slot = r->frame->function->def->kind == DEF_OPTIMIZER ? r->update.variable->path : NULL;
  struct variable as = {.slot = slot, .loc = name->loc}, *v = NULL;
  bool ok = read_declaration(r, s, &as);
  if (ok && as.masters && !r->update.variable->storage) {
    bind_itself(r, name);
    return;
  }
  if (ok) v = variable_at(r, variable_path(r, name->text), &as, s->value);
  if (v && (as.replaces || as.masters) && !stands_for_variable(r, s, v)) v = NULL;
  if (v && as.replaces) r->update.variable->replaced = v;
  if (v && as.masters) r->update.variable->master = v;
  /* What the calls before this one leave, where a layer writes its state. */
  struct node *node = v && v->pending && !v->trainable && !slot ? v->pending : v ? v->node : NULL;
  struct value value = v ? value_tensor(r, node, name->loc) : value_error();
  value.name = name->text;
  value.decl = name->loc;
  if (v) value.tensor.variable = v;
  bind(r, name->text, name->loc, value, true, false);
}

/* `step`: how many training steps have been done. */
struct value step_value(struct resolver *r) {
  struct type t = type_scalar(DT_I64);
  if (r->g == r->init) {
    struct build_context saved = r->init->at;
    r->init->at.scope = STEP_VARIABLE ".initial";
    struct node *zero = build_scalar(r->init, DT_I64, 0);
    r->init->at = saved;
    return value_tensor(r, zero, LOC_NONE);
  }
  if (!r->variables.step || r->variables.step->run != r->run.number) {
    struct build_context saved = r->g->at;
    r->g->at.want = NULL;
    r->g->at.trail = NULL;
    bool is_new = !r->variables.step;
    const struct frame *model = r->frame;
    while (model->caller) model = model->caller;
    r->variables.step =
        variable_at(r, STEP_VARIABLE, &(struct variable){.type = t, .loc = model->call}, NULL);
    if (r->variables.step && is_new) {
      r->init->at.want = NULL;
      r->init->at.scope = "step.initial";
      r->init->at.loc = model->call;
      r->init->at.trail = NULL;
      struct node *n = build_variable(r->init, STEP_VARIABLE, &t, false, NULL);
      struct node *assign = build_assign(r->init, n, build_scalar(r->init, DT_I64, 0));
      graph_add_output(r->init, OUTPUT_UPDATE, assign->name, assign, 0);
    }
    r->g->at = saved;
    r->init->at.trail = saved.trail;
    if (!r->variables.step) return value_error();
  }
  struct value v = value_tensor(r, r->variables.step->node, LOC_NONE);
  v.name = STEP_VARIABLE;
  return v;
}

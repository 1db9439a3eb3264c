/* SPDX-License-Identifier: Apache-2.0 */
/* Statements: blocks are run, loops unrolled, conditions decided. */
#include "frontend/resolve.h"

#include <string.h>

/* The value of a binding carries the binding's name, unless it had a name before. */
static void name_value(struct resolver *r, struct value *v, uint32_t mark, const char *path) {
  if (v->kind == VALUE_TENSOR && v->tensor.graph == r->g && v->tensor.node->id >= mark &&
      !(op_of(v->tensor.node)->traits & OP_NO_CSE))
    graph_rename(r->g, v->tensor.node, path);
}

/* Whether e reads the name. */
static bool mentions(const struct expr *e, const char *name) {
  for (; e; e = e->lhs) {
    if (e->kind == EXPR_NAME && strcmp(e->name, name) == 0) return true;
    if (mentions(e->base, name) || mentions(e->condition, name) || mentions(e->rhs, name)) return true;
    for (const struct arg *a = e->items.first; a; a = a->next)
      if (mentions(a->value, name)) return true;
  }
  return false;
}

/* The path of a name that the statement binds. */
static const char *bound_path(struct resolver *r, const struct stmt *s, const char *name) {
  return binding_path(r, mentions(s->value, name) ? name_bound_again(r, name) : name);
}

static void run_bind(struct resolver *r, const struct stmt *s) {
  const struct name *first = s->names.first;
  const char *saved = r->path;
  r->path = bound_path(r, s, first->text);
  uint32_t mark = r->g->count;
  struct value v = eval(r, s->value, NULL);
  if (s->names.count == 1) {
    name_value(r, &v, mark, r->path);
    bind(r, first->text, first->loc, v, false, mentions(s->value, first->text));
  } else {
    bool fits = v.kind == VALUE_LIST && v.list.count == s->names.count;
    if (!fits && v.kind != VALUE_ERROR)
      report(r, s->loc, "%d names need a list of %d values, not %s", s->names.count, s->names.count,
             value_describe(r->arena, &v));
    int i = 0;
    for (const struct name *n = first; n; n = n->next, i++) {
      struct value item = fits ? v.list.items[i] : value_error();
      name_value(r, &item, mark, bound_path(r, s, n->text));
      item.at = n->loc;
      bind(r, n->text, n->loc, item, false, mentions(s->value, n->text));
    }
  }
  r->path = saved;
}

static void run_trip(struct resolver *r, const struct stmt *s, struct value item, int64_t index) {
  struct frame *f = r->frame;
  const char *suffix = f->suffix, *path = r->path;
  uint64_t block = f->block;
  f->suffix = arena_printf(r->arena, "%s.%lld", suffix, (long long)index);
  f->block = ++r->serial;
  f->loops++;
  scope_push(r);
  bind(r, s->names.first->text, s->names.first->loc, item, true, false);
  run_block(r, &s->body);
  scope_pop(r);
  f->loops--;
  f->suffix = suffix;
  f->block = block;
  r->path = path;
}

static void run_for(struct resolver *r, const struct stmt *s) {
  int64_t lo, hi;
  uint64_t effects = r->effects.count;
  if (scope_find(r, s->names.first->text)) {
    report(r, s->names.first->loc, "`%s` is bound already", s->names.first->text);
    report_note(r, scope_find(r, s->names.first->text)->loc, "it is bound here");
    report_help(r, "the loop may call it `%s`", free_name(r, s->names.first->text));
    return;
  }
  if (s->limit) {
    if (!eval_int(r, s->value, "the start of a loop", &lo) ||
        !eval_int(r, s->limit, "the end of a loop", &hi))
      return;
    if (hi > lo && (uint64_t)hi - (uint64_t)lo > MAX_TRIPS) {
      report(r, loc_join(s->value->loc, s->limit->loc), "a loop runs at most %d times", MAX_TRIPS);
      return;
    }
    for (int64_t i = lo; i < hi && !r->frame->returned && spend(r, s->loc); i++)
      run_trip(r, s, value_int(i), i);
    r->effects.count = effects + 1; /* trips are statements of their own */
    return;
  }
  struct value list = eval(r, s->value, NULL);
  if (list.kind != VALUE_LIST) {
    if (list.kind != VALUE_ERROR) {
      report(r, s->value->loc, "a loop goes over a range or a list, not %s", value_describe(r->arena, &list));
      if (list.kind == VALUE_INT) report_help(r, "write `0..%lld`", (long long)list.i);
      if (list.kind == VALUE_TENSOR)
        report_help(r, "over a tensor goes a loop at run time: `ys = scan over %s in x { return ... }`",
                    s->names.first->text);
    }
    return;
  }
  for (int i = 0; i < list.list.count && !r->frame->returned && spend(r, s->loc); i++)
    run_trip(r, s, list.list.items[i], i);
  r->effects.count = effects + 1;
}

static void run_if(struct resolver *r, const struct stmt *s) {
  bool b;
  if (!eval_bool(r, s->value, &b)) return;
  struct frame *f = r->frame;
  uint64_t block = f->block;
  f->block = ++r->serial;
  f->loops++;
  r->effects.count++;
  run_block(r, b ? &s->body : &s->otherwise);
  f->loops--;
  f->block = block;
}

static void run_return(struct resolver *r, const struct stmt *s) {
  struct frame *f = r->frame;
  const char *saved = r->path;
  r->path = f->path;
  f->result = eval(r, s->value, NULL);
  f->returned = true;
  r->effects.count += f->result.kind != VALUE_ERROR;
  r->path = saved;
}

/* Which definitions a statement may stand in. */
/* What is none has an error of its own. */
static bool is_variable(struct resolver *r, const struct stmt *s) {
  struct binding *b = scope_find(r, s->names.first->text);
  return b && b->value.kind == VALUE_TENSOR && b->value.tensor.variable;
}

static bool belongs(struct resolver *r, const struct stmt *s) {
  enum def_kind kind = r->frame->function->def->kind;
  const char *wrong = NULL;
  switch (s->kind) {
  case STMT_INPUT:
  case STMT_TRAIN:
  case STMT_METRIC:
  case STMT_PREDICT:
  case STMT_DATA:
  case STMT_STRATEGY:
    if (r->frame->step) wrong = "does not stand in a `scan`: it is done once";
    if (kind != DEF_MODEL) wrong = "stands only in a model";
    break;
  case STMT_RETURN:
    if (r->frame->step) break;
    if (kind == DEF_MODEL) wrong = "does not stand in a model: use `predict`";
    break;
  case STMT_VAR:
  case STMT_STATE:
    if (kind == DEF_FUNCTION || kind == DEF_INITIALIZER)
      wrong = "does not stand in a function or initializer: use a layer";
    break;
  case STMT_ASSIGN:
  case STMT_ADD:
    if (r->frame->scans && is_variable(r, s))
      wrong = "does not stand in a `scan`: a variable is assigned once a step of training";
    if (kind == DEF_INITIALIZER) wrong = "does not stand in an initializer: it assigns";
    break;
  case STMT_BIND:
  case STMT_FOR:
  case STMT_SCAN:
  case STMT_IF:
  case STMT_ON: break;
  }
  if (wrong) report(r, s->loc, "this statement %s", wrong);
  return !wrong;
}

static void run_kind(struct resolver *r, const struct stmt *s) {
  switch (s->kind) {
  case STMT_INPUT: declare_input(r, s); break;
  case STMT_VAR:
  case STMT_STATE: declare_variable(r, s); break;
  case STMT_BIND: run_bind(r, s); break;
  case STMT_ASSIGN:
  case STMT_ADD: run_assign(r, s); break;
  case STMT_RETURN: run_return(r, s); break;
  case STMT_FOR: run_for(r, s); break;
  case STMT_SCAN: run_scan(r, s); break;
  case STMT_IF: run_if(r, s); break;
  case STMT_TRAIN: run_train(r, s); break;
  case STMT_METRIC:
    r->effects.evaluates = true;
    if (r->run.kind == RUN_EVAL || (r->run.kind == RUN_TRAIN && r->options->train_metrics)) {
      const char *saved = r->path;
      r->path = s->names.first->text;
      struct value v = eval(r, s->value, NULL);
      run_metric(r, s->names.first->text, s->value->loc, &v, false);
      r->path = saved;
    }
    break;
  case STMT_PREDICT:
    r->effects.predicts = true;
    if (r->run.kind == RUN_PREDICT) run_predict(r, s);
    break;
  case STMT_DATA: declare_data(r, s); break;
  case STMT_STRATEGY: declare_strategy(r, s); break;
  case STMT_ON:
    r->effects.count++;
    run_block(r, &s->body);
    break;
  }
}

/* The device of an `on` annotation, as the nodes built under it want it. */
static void run_place(struct resolver *r, const struct expr *e) {
  const char *place;
  struct device_name name;
  if (!eval_string(r, e, "a device", &place)) return;
  if (device_name_parse(r->arena, place, &name)) {
    r->g->at.want = place;
    return;
  }
  report(r, e->loc, "'%s' is no device name", place);
  report_help(r, "names look like /cpu:0 or /job:worker/task:0/gpu:1");
}

/* Behind a `return` of the same block nothing is run. */
static void warn_unreached(struct resolver *r, const struct stmt *s) {
  if (s->kind != STMT_RETURN || !s->next || *s->next->effect & STATEMENT_MET || is_library(r, s->loc)) return;
  *s->next->effect |= STATEMENT_MET;
  diag_warning(r->diags, s->next->loc, "this is never run: it stands behind `return`");
}

void run_block(struct resolver *r, const struct block *b) {
  if (r->budget.depth >= MAX_EVAL) {
    if (!r->budget.stopped && b->first)
      report(r, b->first->loc, "expressions and calls are nested more than %d deep", MAX_EVAL);
    r->budget.stopped = true;
    return;
  }
  const struct stmt *outer = r->frame->statement;
  uint64_t numbered = r->frame->numbered;
  r->budget.depth++;
  for (const struct stmt *s = b->first; s && !r->frame->returned && !r->budget.stopped; s = s->next) {
    const char *want = r->g->at.want;
    uint64_t effects = r->effects.count;
    r->frame->statement = s;
    r->frame->numbered = 0;
    if (s->place) run_place(r, s->place);
    if (belongs(r, s)) run_kind(r, s);
    effects_settle(r, s, effects);
    warn_unreached(r, s);
    r->g->at.want = want;
  }
  r->frame->statement = outer;
  r->frame->numbered = numbered;
  r->budget.depth--;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs, data files and the strategy. */
#include "frontend/resolve.h"

#include <string.h>

struct model_input *input_named(const struct resolver *r, const char *name) {
  size_t place = (uintptr_t)map_get(&r->declared.inputs, name);
  return place ? &r->model->inputs[place - 1] : NULL;
}

/* The type with the batch in front of it, and where that may be what its first axis is meant for, in its place. */
static void help_batch_first(struct resolver *r, const struct type *t) {
  struct type rows = {.dtype = t->dtype, .rank = 1, .dim = {-1}}, instead = *t;
  if (scope_find(r, "B")) {
    report_help(r, "`B` is here a parameter or a value: leave that out, and `B` is the batch, of which "
                   "`--batch 32` says the size");
    return;
  }
  for (int i = 0; i < t->rank && rows.rank < MAX_RANK; i++) rows.dim[rows.rank++] = t->dim[i];
  if (t->rank == 0 || t->rank == MAX_RANK || type_is_symbolic(t)) rows.rank = 1;
  if (t->rank > 0) instead.dim[0] = -1;
  if (rows.rank == 1 && t->rank > 0)
    report_help(r, "write `%s[B, ...]`", dtype_name((enum dtype)t->dtype));
  else if (t->rank > 0)
    report_help(r, "write `%s`, or where %lld is the number of rows `%s`", type_text(r->arena, &rows),
                (long long)t->dim[0], type_text(r->arena, &instead));
  else
    report_help(r, "write `%s`", type_text(r->arena, &rows));
}

void declare_input(struct resolver *r, const struct stmt *s) {
  const struct name *name = s->names.first;
  struct type t;
  bool ok = eval_type(r, s->type, &t);
  if (ok && (t.rank == 0 || t.dim[0] != -1)) {
    report(r, s->type->loc, "an input begins with the batch axis B, not %s", type_text(r->arena, &t));
    help_batch_first(r, &t);
    ok = false;
  }
  if (!ok) {
    bind(r, name->text, name->loc, value_error(), true, false);
    return;
  }
  r->g->at.loc = name->loc;
  struct value v = value_tensor(r, build_input(r->g, name->text, &t), s->loc);
  v.name = name->text;
  v.decl = name->loc;
  bind(r, name->text, name->loc, v, true, false);
  struct model *m = r->model;
  if (input_named(r, name->text)) return;
  m->inputs = arena_grown(r->arena, m->inputs, m->ninputs, sizeof *m->inputs);
  m->inputs[m->ninputs++] =
      (struct model_input){.name = name->text, .type = t, .loc = name->loc, .high = -1, .part_high = -1};
  map_put(&r->declared.inputs, name->text, (void *)(uintptr_t)m->ninputs);
}

/* A string, or a list of them. */
static bool eval_files(struct resolver *r, const struct expr *e, struct model_data *out) {
  if (e->kind == EXPR_MEMBER && e->base->kind == EXPR_NAME) {
    report(r, e->loc, "a data file must be a string or a list of strings");
    report_help(r, "the name of a file stands in quotes: \"%s.%s\"", e->base->name, e->name);
    return false;
  }
  struct value v = eval(r, e, NULL);
  const struct value *items = &v;
  out->npaths = 1;
  if (v.kind == VALUE_ERROR) return false;
  if (v.kind == VALUE_LIST) items = v.list.items, out->npaths = v.list.count;
  out->paths = arena_new_array(r->arena, (size_t)out->npaths + 1, const char *);
  bool strings = out->npaths > 0;
  for (int i = 0; i < out->npaths && strings; i++) {
    strings = items[i].kind == VALUE_STRING;
    if (strings) out->paths[i] = resolve_path(r, e->loc.source, items[i].string);
  }
  if (!strings)
    report(r, e->loc, "a data file must be a string or a list of strings, not %s",
           value_describe(r->arena, &v));
  return strings;
}

void declare_data(struct resolver *r, const struct stmt *s) {
  struct model *m = r->model;
  const char *split = s->names.first->text;
  if (strcmp(split, "train") != 0 && strcmp(split, "test") != 0) {
    report(r, s->names.first->loc, "data is for `train` or `test`, not `%s`", split);
    report_help(
        r, "what is evaluated stands in `data test { }`, and --rows 0:A --eval-rows A:B cuts `data train`");
    return;
  }
  if (r->run.kind != RUN_TRAIN) return;
  if (!s->entries.first)
    report(r, s->loc, "data names a file for each input, as in `data %s { x = \"x.npy\" }`", split);
  for (const struct arg *a = s->entries.first; a; a = a->next) {
    struct model_data data = {.split = split, .input = a->name, .loc = a->loc};
    if (!eval_files(r, a->value, &data)) continue;
    if (!input_named(r, a->name) && !scope_find(r, a->name)) {
      report(r, a->loc, "there is no input `%s`", a->name);
      const char **names = arena_new_array(r->arena, (size_t)m->ninputs, const char *);
      for (int i = 0; i < m->ninputs; i++) names[i] = m->inputs[i].name;
      report_closest(r, a->name, names, (size_t)m->ninputs);
      continue;
    }
    const char *key = arena_printf(r->arena, "%s %s", split, a->name);
    size_t twice = (uintptr_t)map_get(&r->declared.data, key);
    if (twice) {
      report(r, a->loc, "`%s` has %s data already", a->name, split);
      report_note(r, m->data[twice - 1].loc, "it is given here");
      continue;
    }
    m->data = arena_grown(r->arena, m->data, m->ndata, sizeof *m->data);
    m->data[m->ndata++] = data;
    map_put(&r->declared.data, key, (void *)(uintptr_t)m->ndata);
    r->effects.count++;
  }
}

/* `towers = 4`: which settings there are is not known here. */
static void add_setting(struct resolver *r, const struct arg *a) {
  struct model_strategy *m = &r->model->strategy;
  struct model_setting *set = &m->settings[m->nsettings];
  *set = (struct model_setting){.name = a->name, .loc = a->loc};
  if (!a->name) {
    report(r, a->loc, "a strategy's settings have names, as in `towers = 4`");
    return;
  }
  for (int i = 0; i < m->nsettings; i++)
    if (strcmp(m->settings[i].name, a->name) == 0) {
      report(r, a->loc, "`%s` is given twice", a->name);
      return;
    }
  struct value v = eval(r, a->value, NULL);
  switch (v.kind) {
  case VALUE_INT:
  case VALUE_BOOL:
    set->kind = v.kind == VALUE_INT ? SETTING_INT : SETTING_FLAG;
    set->i = v.kind == VALUE_INT ? v.i : v.b;
    break;
  case VALUE_STRING:
    set->kind = SETTING_TEXT;
    set->text = v.string;
    break;
  case VALUE_ERROR: return;
  case VALUE_NONE:
  case VALUE_BATCH:
  case VALUE_FLOAT:
  case VALUE_LIST:
  case VALUE_DTYPE:
  case VALUE_TYPE:
  case VALUE_FUNCTION:
  case VALUE_BUILTIN:
  case VALUE_OP:
  case VALUE_MODULE:
  case VALUE_LAYER:
  case VALUE_TENSOR:
    report(r, a->value->loc, "a setting is an integer, a string or a truth value, not %s",
           value_describe(r->arena, &v));
    return;
  }
  m->nsettings++;
}

void declare_strategy(struct resolver *r, const struct stmt *s) {
  struct model_strategy *m = &r->model->strategy;
  const struct expr *e = s->value, *name = e->kind == EXPR_CALL ? e->base : e;
  if (r->run.kind != RUN_TRAIN) return;
  if (name->kind != EXPR_NAME) {
    report(r, e->loc, "behind `strategy` stands its name, as in `strategy mirrored(towers = 4)`");
    return;
  }
  if (m->name) {
    report(r, s->loc, "a model has one strategy");
    report_note(r, m->loc, "the other one is here");
    return;
  }
  m->name = name->name;
  m->loc = name->loc;
  r->effects.count++;
  if (e->kind != EXPR_CALL) return;
  m->settings = arena_new_array(r->arena, (size_t)e->items.count, struct model_setting);
  for (const struct arg *a = e->items.first; a; a = a->next) add_setting(r, a);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Names: what a block binds, what a module defines, what the language has built in. */
#include "frontend/elsewhere.h"
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <math.h>
#include <string.h>

struct binding *scope_find(const struct resolver *r, const char *name) {
  for (const struct scope *s = r->frame ? r->frame->scope : NULL; s; s = s->outer) {
    struct binding *b = map_get(&s->names, name);
    if (b) return b;
  }
  return NULL;
}

/* Ops that the language has under their names. */
static bool is_function(enum op_id op) {
  return op_table[op]->kind == KIND_ELEMENTWISE || op_table[op]->traits & OP_FUNCTION;
}

bool is_built_in(const char *name) {
  enum op_id op = op_lookup(name, strlen(name));
  return builtin_find(name) || (op < OP_COUNT && is_function(op));
}

static struct value builtin_name(struct resolver *r, const char *name) {
  enum dtype d;
  bool type = dtype_parse(name, strlen(name), &d);
  if (type && dtype_is_narrow(d)) return (struct value){.kind = VALUE_STRING, .string = dtype_name(d)};
  if (type) return value_dtype(d);
  if (strcmp(name, "B") == 0) return value_dim(-1);
  if (strcmp(name, "none") == 0) return value_none();
  if (strcmp(name, "pi") == 0) return value_float(3.14159265358979323846);
  if (strcmp(name, "inf") == 0) return value_float((double)INFINITY);
  if (strcmp(name, "training") == 0) return value_bool(r->run.kind == RUN_TRAIN);
  if (strcmp(name, STEP_VARIABLE) == 0 && r->update.step && r->g != r->init)
    return value_tensor(r, r->update.step, r->update.step->loc);
  if (strcmp(name, STEP_VARIABLE) == 0) return step_value(r);
  const struct builtin *b = builtin_find(name);
  if (b) return (struct value){.kind = VALUE_BUILTIN, .builtin = b};
  enum op_id op = op_lookup(name, strlen(name));
  if (op < OP_COUNT && is_function(op)) return (struct value){.kind = VALUE_OP, .op = op};
  return value_error();
}

struct value lookup(struct resolver *r, const char *name, bool called) {
  for (const struct scope *s = r->frame ? r->frame->scope : NULL; s; s = s->outer) {
    struct binding *b = map_get(&s->names, name);
    if (b && (!called || value_is_callable(&b->value) || b->value.kind == VALUE_ERROR)) return b->value;
  }
  for (const struct module *m = r->frame ? r->frame->function->module : NULL; m; m = m->outer) {
    const struct value *v = module_find(r, m, name);
    if (v && (!called || value_is_callable(v))) return *v;
  }
  return builtin_name(r, name);
}

static void collect(struct str *seen, const char ***names, size_t *count, size_t *cap, const struct map *m) {
  for (uint32_t i = 0; i < m->count; i++) {
    if (*count == *cap) {
      *cap = *cap ? 2 * *cap : 256;
      const char **more = arena_new_array(seen->arena, *cap, const char *);
      if (*count) memcpy(more, *names, *count * sizeof *more);
      *names = more;
    }
    (*names)[(*count)++] = m->entries[i].key;
  }
}

/* All names that could have been meant. */
static const char **visible(struct resolver *r, size_t *count) {
  const char **names = NULL;
  size_t cap = 0;
  struct str s = str_make(r->arena);
  *count = 0;
  for (const struct scope *sc = r->frame ? r->frame->scope : NULL; sc; sc = sc->outer)
    collect(&s, &names, count, &cap, &sc->names);
  for (const struct module *m = r->frame ? r->frame->function->module : NULL; m; m = m->outer)
    collect(&s, &names, count, &cap, &m->names);
  struct map others = map_make(r->arena);
  static const char *const words[] = {"B", "none", "pi", "inf", "training", STEP_VARIABLE, "true", "false"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) map_put(&others, words[i], r);
  for (int d = 0; d < DT_COUNT; d++) map_put(&others, dtype_name((enum dtype)d), r);
  for (int t = 0; builtin_tables[t]; t++)
    for (const struct builtin *b = builtin_tables[t]; b->name; b++) map_put(&others, b->name, r);
  for (int op = 0; op < OP_COUNT; op++)
    if (is_function((enum op_id)op)) map_put(&others, op_table[op]->name, r);
  collect(&s, &names, count, &cap, &others);
  return names;
}

const char *lower_case(struct arena *a, const char *name) {
  char *small = arena_strdup(a, name);
  for (char *c = small; *c; c++)
    if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
  return small;
}

void report_unknown(struct resolver *r, struct loc loc, const char *name, bool called) {
  struct binding *b = called ? scope_find(r, name) : NULL;
  if (b && b->value.kind == VALUE_ERROR) return;
  if (b) {
    report(r, loc, "`%s` is not a function: it is %s", name, value_describe(r->arena, &b->value));
    report_note(r, b->loc, "`%s` is bound here", name);
    if (b->value.kind == VALUE_STRING)
      report_help(r, "functions have no quotes: `%s = %s`", name, b->value.string);
    if (b->value.kind == VALUE_TENSOR && b->value.tensor.node->type.rank == 2)
      report_help(r, "a product of matrices is `x @ %s`", name);
    return;
  }
  report(r, loc, "unknown %s `%s`", called ? "function" : "name", name);
  b = r->frame && r->frame->left.arena ? map_get(&r->frame->left, name) : NULL;
  if (b) {
    report_note(r, b->loc, "`%s` is bound here, and is gone where the loop ends", name);
    if (!b->fixed) report_help(r, "what is bound before a loop stays behind it; a `scan` carries it");
    return;
  }
  const struct module *nn = load_library(r, "nn");
  if (strcmp(name, "nn") == 0) {
    report_help(r, "write `use nn` at the top");
    return;
  }
  const char *small = lower_case(r->arena, name);
  if (nn && map_get(&nn->names, small)) {
    report_help(r, "the library has it: `use nn` and write `nn.%s`", small);
    return;
  }
  const char *help = elsewhere_help(r->arena, name);
  if (help) {
    report_help(r, "%s", help);
    return;
  }
  size_t count;
  const char **names = visible(r, &count);
  report_closest(r, name, names, count);
}

/* What can be called without a library and is so called, but for case: "relu" of nn.ReLU. NULL: nothing. */
static const char *outside_of_libraries(struct resolver *r, const char *name) {
  const char *small = lower_case(r->arena, name);
  struct value function = lookup(r, small, true);
  return value_is_callable(&function) ? small : NULL;
}

void report_no_member(struct resolver *r, struct loc loc, const struct module *m, const char *name) {
  report(r, loc, "`%s` has no `%s`", m->name, name);
  size_t n = m->names.count;
  const char **names = arena_new_array(r->arena, n, const char *), *outside = outside_of_libraries(r, name);
  for (size_t i = 0; i < n; i++) names[i] = m->names.entries[i].key;
  if (outside)
    report_help(r, "it is in no library: write `%s(...)`", outside);
  else if (elsewhere_help(r->arena, name))
    report_help(r, "%s", elsewhere_help(r->arena, name));
  else
    report_closest(r, name, names, n);
}

void scope_push(struct resolver *r) {
  struct scope *s = arena_new(r->arena, struct scope);
  s->outer = r->frame->scope;
  s->names = map_make(r->arena);
  r->frame->scope = s;
}

void scope_pop(struct resolver *r) {
  struct frame *f = r->frame;
  const struct map *names = &f->scope->names;
  if (!f->left.arena) f->left = map_make(r->arena);
  for (uint32_t i = 0; i < names->count; i++)
    map_put(&f->left, names->entries[i].key, names->entries[i].value);
  f->scope = f->scope->outer;
}

static bool in_this_block(const struct resolver *r, const struct binding *b) {
  return b->fixed || b->block == r->frame->block || r->frame->loops == 0;
}

const char *binding_path(struct resolver *r, const char *name) {
  const struct frame *f = r->frame;
  return arena_printf(r->arena, "%s%s%s%s", f->path, *f->path ? "." : "", name, f->suffix);
}

const char *name_bound_again(struct resolver *r, const char *name) {
  const struct binding *b = scope_find(r, name);
  if (!b || !in_this_block(r, b)) return name;
  size_t times = (uintptr_t)map_get(&r->run.bound, binding_path(r, name));
  return times ? arena_printf(r->arena, "%s#%zu", name, times + 1) : name;
}

static bool is_variable(const struct binding *b) {
  return b->value.kind == VALUE_TENSOR && b->value.tensor.variable;
}

const char *free_name(struct resolver *r, const char *name) {
  const char *other = NULL;
  for (int i = 2; !other || scope_find(r, other); i++) other = arena_printf(r->arena, "%s_%d", name, i);
  return other;
}

static void report_bound(struct resolver *r, const char *name, struct loc loc, const struct binding *b,
                         bool fixed) {
  report(r, loc, "`%s` is bound already", name);
  report_note(r, b->loc, "it is bound here");
  if (is_variable(b))
    report_help(r, "a variable is changed by its optimizer, or by `%s <- ...`", name);
  else if (!fixed)
    report_help(r,
                "only what is made of `%s` may take its name: call this value `%s`, and use that behind it",
                name, free_name(r, name));
}

/* Whether the name is bound around the step of a scan that is being run, not in it. */
static bool is_outside_step(const struct resolver *r, const char *name) {
  for (const struct scope *s = r->frame->scope; s && !map_get(&s->names, name); s = s->outer)
    if (s->step) return true;
  return false;
}

void bind(struct resolver *r, const char *name, struct loc loc, struct value value, bool fixed, bool again) {
  if (!value.name) {
    value.name = name;
    value.decl = loc;
  }
  struct binding *b = scope_find(r, name);
  bool here = b && in_this_block(r, b);
  if (b && is_outside_step(r, name)) {
    report(r, loc, "`%s` is bound outside of this `scan`, and stays what it is in all steps", name);
    report_note(r, b->loc, "it is bound here");
    report_help(r, "carry it from step to step, `scan %s ...`, or give this value another name", name);
    return;
  }
  if (here && (fixed || !again || (b->fixed && is_variable(b)))) {
    report_bound(r, name, loc, b, fixed);
    return;
  }
  if (!b) {
    b = arena_new(r->arena, struct binding);
    map_put(&r->frame->scope->names, name, b);
    b->loc = loc;
  }
  b->fixed = fixed;
  b->value = value;
  b->block = r->frame->block;
  const char *path = binding_path(r, name);
  map_put(&r->run.bound, path, (void *)((uintptr_t)map_get(&r->run.bound, path) + 1));
  r->effects.count += value.kind != VALUE_ERROR;
}

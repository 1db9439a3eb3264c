/* SPDX-License-Identifier: Apache-2.0 */
/* What variables are called: by what the author wrote on the way to them, and by nothing that stands around it.
 *
 * A call of a layer owns its variables under the name that its statement binds; one inside the arguments of another
 * layer's call adds the name of its layer. Where calls of one statement would own the same name, those behind the
 * first are numbered in the order in which they are computed: `y.kernel`, `y#2.kernel`. Functions, operators and lists
 * add nothing, unless a function calls layers: then it is like a layer. All is told by the text alone, so that a
 * branch that is not taken changes no name. */
#include "frontend/resolve.h"

#include <string.h>

enum makes { MAKES_UNKNOWN, MAKES_NOTHING, MAKES_VARIABLES };

const char *variable_path(struct resolver *r, const char *name) {
  const struct frame *f = r->frame;
  return arena_printf(r->arena, "%s%s%s%s", f->owner, *f->owner ? "." : "", name, f->suffix);
}

/* --- whether a function calls layers --- */

/* What a module knows under a name, without what is bound in bodies. */
static struct value module_name(struct resolver *r, const struct module *m, const char *name) {
  for (; m; m = m->outer) {
    const struct value *v = module_find(r, m, name);
    if (v) return *v;
  }
  return value_none();
}

static bool block_makes(struct resolver *r, const struct function *f, const struct block *b);

static bool is_param(const struct def *d, const char *name) {
  for (const struct param *p = d->params.first; p; p = p->next)
    if (strcmp(p->name, name) == 0) return true;
  return false;
}

/* Whether this call may be one of a layer; what is no definition is one of those that make nothing only if it is
 * built in. */
static bool callee_makes(struct resolver *r, const struct function *f, const struct expr *callee) {
  struct value v = value_none();
  if (callee->kind == EXPR_NAME && is_param(f->def, callee->name)) return true;
  if (callee->kind == EXPR_NAME) v = module_name(r, f->module, callee->name);
  if (callee->kind == EXPR_MEMBER && callee->base->kind == EXPR_NAME) {
    struct value base = module_name(r, f->module, callee->base->name);
    if (base.kind == VALUE_MODULE) v = module_name(r, base.module, callee->name);
  }
  if (v.kind == VALUE_FUNCTION) return makes_variables(r, v.function);
  if (v.kind != VALUE_NONE || callee->kind != EXPR_NAME) return true;
  return !is_built_in(callee->name);
}

static bool expr_makes(struct resolver *r, const struct function *f, const struct expr *e) {
  for (; e; e = e->lhs) {
    if (e->kind == EXPR_CALL && callee_makes(r, f, e->base)) return true;
    if (expr_makes(r, f, e->base) || expr_makes(r, f, e->condition) || expr_makes(r, f, e->rhs)) return true;
    for (const struct arg *a = e->items.first; a; a = a->next)
      if (expr_makes(r, f, a->value)) return true;
  }
  return false;
}

static bool block_makes(struct resolver *r, const struct function *f, const struct block *b) {
  for (const struct stmt *s = b->first; s; s = s->next) {
    if (expr_makes(r, f, s->value) || expr_makes(r, f, s->limit) || block_makes(r, f, &s->body) ||
        block_makes(r, f, &s->otherwise))
      return true;
    for (const struct arg *a = s->entries.first; a && s->kind == STMT_SCAN; a = a->next)
      if (expr_makes(r, f, a->value)) return true;
  }
  return false;
}

bool makes_variables(struct resolver *r, const struct function *f) {
  if (f->def->kind != DEF_FUNCTION) return f->def->kind == DEF_LAYER;
  if (*f->makes == MAKES_UNKNOWN) {
    *f->makes = MAKES_NOTHING; /* as far as it calls itself */
    bool makes = block_makes(r, f, &f->def->body);
    for (const struct param *p = f->def->params.first; p && !makes; p = p->next)
      makes = expr_makes(r, f, p->value);
    *f->makes = makes ? MAKES_VARIABLES : MAKES_NOTHING;
  }
  return *f->makes == MAKES_VARIABLES;
}

/* --- the calls of a statement --- */

/* How many calls own each name so far: those of a layer inside another's arguments, or, as "", the outermost. */
struct owners {
  const char *name;
  int count;
  struct owners *next;
};

/* The name of what is called, if its calls own variables; NULL: they own none. */
static const char *owning(struct resolver *r, const struct expr *callee) {
  struct value v = value_none();
  const struct expr *made = is_maker(callee) ? callee->base : callee;
  if (made->kind == EXPR_NAME) {
    v = lookup(r, made->name, true);
  } else if (made->kind == EXPR_MEMBER && made->base->kind == EXPR_NAME) {
    struct value base = lookup(r, made->base->name, false);
    const struct value *member = base.kind == VALUE_MODULE ? module_find(r, base.module, made->name) : NULL;
    if (member) v = *member;
  } else {
    return "?"; /* it is known when it is called */
  }
  return v.kind == VALUE_FUNCTION && makes_variables(r, v.function) ? v.function->def->name : NULL;
}

static int count_owner(struct resolver *r, struct owners **all, const char *name) {
  struct owners *o = *all;
  while (o && strcmp(o->name, name) != 0) o = o->next;
  if (!o) {
    o = arena_new(r->arena, struct owners);
    *o = (struct owners){name, 0, *all};
    *all = o;
  }
  return ++o->count;
}

static struct owners *copy_owners(struct resolver *r, const struct owners *all) {
  struct owners *copy = NULL;
  for (; all; all = all->next) {
    struct owners *o = arena_new(r->arena, struct owners);
    *o = (struct owners){all->name, all->count, copy};
    copy = o;
  }
  return copy;
}

static void number_calls(struct resolver *r, const struct expr *e, bool nested, struct owners **all);

/* One branch is taken: both begin with the same numbers, and what follows both goes on from the greater ones. */
static void number_branches(struct resolver *r, const struct expr *e, bool nested, struct owners **all) {
  number_calls(r, e->condition, nested, all);
  struct owners *other = copy_owners(r, *all);
  number_calls(r, e->lhs, nested, all);
  number_calls(r, e->rhs, nested, &other);
  for (; other; other = other->next) {
    struct owners *o = *all;
    while (o && strcmp(o->name, other->name) != 0) o = o->next;
    while (!o || o->count < other->count) {
      count_owner(r, all, other->name);
      if (!o) o = *all;
    }
  }
}

static void number_call(struct resolver *r, const struct expr *e, bool nested, struct owners **all) {
  const char *name = owning(r, e->base);
  if (e->base->kind != EXPR_NAME) number_calls(r, e->base, nested, all);
  for (const struct arg *a = e->items.first; a; a = a->next) number_calls(r, a->value, nested || name, all);
  if (name)
    *e->call = (struct call_note){r->frame->numbered, nested, count_owner(r, all, nested ? name : "")};
}

/* In the order in which it is computed. A chain of operators is walked, not recursed into. */
static void number_calls(struct resolver *r, const struct expr *e, bool nested, struct owners **all) {
  if (!e) return;
  if (e->kind == EXPR_CONDITIONAL) {
    number_branches(r, e, nested, all);
    return;
  }
  if (e->kind == EXPR_CALL) {
    number_call(r, e, nested, all);
    return;
  }
  int n = 0;
  for (const struct expr *q = e; q->kind == EXPR_BINARY; q = q->lhs) n++;
  const struct expr **chain = n ? arena_new_array(r->arena, (size_t)n, const struct expr *) : NULL;
  for (int i = n; i-- > 0; e = e->lhs) chain[i] = e;
  if (n) number_calls(r, e, nested, all);
  for (int i = 0; i < n; i++) number_calls(r, chain[i]->rhs, nested, all);
  if (n) return;
  number_calls(r, e->base, nested, all);
  number_calls(r, e->lhs, nested, all);
  number_calls(r, e->rhs, nested, all);
  for (const struct arg *a = e->items.first; a; a = a->next) number_calls(r, a->value, nested, all);
}

/* What is noted at e, by the statement that is being run; the same text may be run inside itself, for other layers. */
static struct call_note note_of(struct resolver *r, const struct expr *e) {
  struct frame *f = r->frame;
  const struct stmt *s = f->statement;
  struct call_note alone = {0, false, 1};
  if (!s) return alone;
  if (!f->numbered) f->numbered = ++r->serial;
  if (e->call->by != f->numbered) {
    struct owners *all = NULL;
    number_calls(r, s->value, false, &all);
    number_calls(r, s->limit, false, &all);
    number_calls(r, s->optimizer, false, &all);
    number_calls(r, s->over, false, &all);
    for (const struct arg *a = s->entries.first; a && s->kind == STMT_SCAN; a = a->next)
      number_calls(r, a->value, false, &all);
  }
  return e->call->by == f->numbered ? *e->call : alone;
}

const char *owner_of_call(struct resolver *r, const struct expr *e, const char *name) {
  const struct frame *f = r->frame;
  struct call_note note = note_of(r, e);
  size_t len = strlen(f->path);
  const char *bound = strncmp(r->path, f->path, len) == 0 ? r->path + len : r->path;
  struct str s = str_make(r->arena);
  str_put(&s, f->owner);
  if (*bound == '.') bound++;
  if (*bound) str_printf(&s, "%s%s", s.len ? "." : "", bound);
  if (note.nested || !s.len) str_printf(&s, "%s%s", s.len ? "." : "", name);
  if (note.number > 1) str_printf(&s, "#%d", note.number);
  return s.data;
}

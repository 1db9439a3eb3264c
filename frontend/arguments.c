/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments: which parameter each of a call is for, and what it is. */
#include "frontend/advice.h"
#include "frontend/elsewhere.h"
#include "frontend/resolve.h"

#include <string.h>

/* A call whose arguments meet the parameters. */
struct matching {
  const struct expr *call;
  const struct value *callee;
  const struct signature *s;
  const struct arg **given; /* for each parameter, or NULL */
  bool making;              /* the call is `... .new` */
};

/* The parameter of the next argument without a name. */
static int next_param(const struct signature *s, int *next) {
  while (*next < s->count && signature_has(s, *next)) ++*next;
  return (*next)++;
}

/* The parameter of the first missing argument is `first`. */
static void help_missing(struct resolver *r, const struct matching *m, int first) {
  const struct signature *s = m->s;
  const struct value *callee = m->callee;
  if (first > 0 && help_input_first(r, m->call, callee)) return;
  if (first == 0 && callee->kind == VALUE_FUNCTION && callee->function->def->kind == DEF_LAYER) {
    report_help(r, "`%s.new(...)` makes a layer that is called later, as often as it is needed",
                callee->function->def->name);
    return;
  }
  const char **missing = arena_new_array(r->arena, (size_t)s->required, const char *);
  int count = 0;
  for (int i = first; i < s->required; i++)
    if (!m->given[i] && !signature_has(s, i)) missing[count++] = s->params[i];
  help_call(r, m->call, missing, count);
}

/* What is built in takes `none` where that is the default, and nowhere else. */
static bool report_none(struct resolver *r, const struct signature *s, const struct value *callee, int i,
                        const struct value *v) {
  const char *otherwise = s->defaults[i];
  bool built_in = callee->kind == VALUE_BUILTIN || callee->kind == VALUE_OP;
  if (v->kind != VALUE_NONE || !built_in || (otherwise && strcmp(otherwise, "none") == 0)) return false;
  bool known = otherwise && strcmp(otherwise, "...") != 0;
  report(r, v->at, "`%s` of `%s` cannot be none%s%s", s->params[i], s->name,
         known       ? ": its default is "
         : otherwise ? ""
                     : ": it has no default",
         known ? otherwise : "");
  if (otherwise) report_help(r, "leave `%s` out", s->params[i]);
  return true;
}

/* A parameter that there is not: what to write. */
static void help_parameter(struct resolver *r, const struct signature *s, const char *name) {
  const char *whole = arena_printf(r->arena, "%s.%s", s->name, name);
  const char *help = elsewhere_help(r->arena, whole);
  if (!help && !elsewhere_name(name, s->params, (size_t)s->count)) help = elsewhere_help(r->arena, name);
  if (help)
    report_help(r, "%s", help);
  else
    report_closest(r, name, s->params, (size_t)s->count);
}

static void report_too_many(struct resolver *r, const struct matching *m, struct loc loc) {
  const struct signature *s = m->s;
  int most = s->count - m->making;
  report(r, loc, "%s `%s%s` takes %d argument%s, not %d", s->what, s->name, m->making ? ".new" : "", most,
         most == 1 ? "" : "s", m->call->items.count);
  note_signature(r, s, m->callee);
  if (m->making)
    report_help(r, "what is made takes `%s` when it is called", s->params[0]);
  else
    help_too_many(r, s, m->callee);
}

/* The argument is for parameter `at`. False after an error. */
static bool place(struct resolver *r, struct matching *m, const struct arg *a, int at) {
  const struct signature *s = m->s;
  if (at < 0) {
    report(r, a->loc, "%s `%s` has no parameter `%s`", s->what, s->name, a->name);
    help_parameter(r, s, a->name);
    note_signature(r, s, m->callee);
  } else if (signature_has(s, at)) {
    report(r, a->loc, "`%s` of `%s` was given when the layer was made", s->params[at], s->name);
    report_note(r, s->made->args[at].at, "it was given here");
  } else if (m->given[at]) {
    report(r, a->loc, "`%s` of `%s` is given twice", s->params[at], s->name);
    report_note(r, m->given[at]->loc, "it is given here");
  } else {
    m->given[at] = a;
    return true;
  }
  return false;
}

/* False: it cannot be told what the arguments are for, and they are not looked at. *ok: each has a place. */
static bool place_all(struct resolver *r, struct matching *m, bool *ok) {
  bool named = false;
  int next = m->making;
  for (const struct arg *a = m->call->items.first; a; a = a->next) {
    if (!a->name && named) {
      report(r, a->loc, "arguments without a name stand before those with one");
      return false;
    }
    named |= a->name != NULL;
    int at = a->name ? signature_find(m->s, a->name) : next_param(m->s, &next);
    if (at >= m->s->count) {
      report_too_many(r, m, a->loc);
      return false;
    }
    *ok &= place(r, m, a, at);
  }
  return true;
}

/* Whether nothing is missing. */
static bool check_required(struct resolver *r, const struct matching *m) {
  const struct signature *s = m->s;
  int i = 0;
  while (i < s->required && (m->given[i] || signature_has(s, i))) i++;
  if (i == s->required) return true;
  report(r, m->call->loc, "%s `%s` needs `%s`", s->what, s->name, s->params[i]);
  note_signature(r, s, m->callee);
  help_missing(r, m, i);
  return false;
}

/* The argument for parameter i, which is p in a definition f. False after an error. */
static bool eval_argument(struct resolver *r, const struct matching *m, int i, const struct function *f,
                          const struct param *p, const struct role *role, struct value *out) {
  *out = value_error();
  if (p && report_called(r, f, p, m->given[i])) return false;
  struct role inner = {role, m->s->params[i], 0};
  *out = eval(r, m->given[i]->value, &inner);
  if (out->kind == VALUE_ERROR || (p && report_no_function(r, f, p, out))) return false;
  return !report_none(r, m->s, m->callee, i, out);
}

static bool eval_all(struct resolver *r, const struct matching *m, const struct role *role,
                     struct value *out) {
  const struct signature *s = m->s;
  const struct function *f = s->made                             ? s->made->function
                             : m->callee->kind == VALUE_FUNCTION ? m->callee->function
                                                                 : NULL;
  const struct param *p = f ? f->def->params.first : NULL;
  bool ok = true;
  for (int i = 0; i < s->count; i++, p = p ? p->next : NULL) {
    out[i] = signature_has(s, i) ? s->made->args[i] : value_none();
    if (m->given[i]) ok &= eval_argument(r, m, i, f, p, role, &out[i]);
  }
  return ok;
}

static bool match_args(struct resolver *r, const struct expr *e, const struct value *callee,
                       const struct role *role, bool making, struct value *out) {
  struct signature s;
  signature_of(r, callee, &s);
  struct matching m = {e, callee, &s, arena_new_array(r->arena, (size_t)s.count + 1, const struct arg *),
                       making};
  bool ok = true;
  if (!place_all(r, &m, &ok)) return false;
  ok = ok && (making || check_required(r, &m));
  ok &= eval_all(r, &m, role, out);
  if (!ok || is_library(r, e->loc)) return ok;
  advise_arguments(r, &s, callee, out);
  return !report_turned_round(r, &s, callee, out) && !report_classes(r, &s, callee, out);
}

bool eval_args(struct resolver *r, const struct expr *e, const struct value *callee, const struct role *role,
               struct value *out) {
  return match_args(r, e, callee, role, false, out);
}

bool eval_new_args(struct resolver *r, const struct expr *e, const struct value *of, const struct role *role,
                   struct value *out) {
  return match_args(r, e, of, role, true, out);
}

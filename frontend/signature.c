/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures, of definitions, of what is built in, of ops, and of layers that were made. */
#include "frontend/signature.h"
#include "frontend/resolve.h"

#include <string.h>

void signature_of(struct resolver *r, const struct value *callee, struct signature *s) {
  const struct made_layer *made = callee->kind == VALUE_LAYER ? callee->layer : NULL;
  const struct def *d = made                             ? made->function->def
                        : callee->kind == VALUE_FUNCTION ? callee->function->def
                                                         : NULL;
  int most = d ? d->params.count : MAX_GIVEN;
  *s = (struct signature){
      .what = "function", .params = arena_new_array(r->arena, (size_t)most, const char *), .made = made};
  s->defaults = arena_new_array(r->arena, (size_t)most, const char *);
  if (d) {
    s->what = def_kind_name(d->kind);
    s->name = d->name;
    for (const struct param *p = d->params.first; p; p = p->next) {
      s->params[s->count++] = p->name;
      if (!p->value) s->required = s->count;
    }
  } else if (callee->kind == VALUE_BUILTIN) {
    s->name = callee->builtin->name;
    for (int i = 0; i < MAX_GIVEN && callee->builtin->params[i]; i++, s->count++) {
      const char *text = callee->builtin->params[i], *equals = strstr(text, " = ");
      s->params[i] = equals ? arena_strndup(r->arena, text, (size_t)(equals - text)) : text;
      s->defaults[i] = equals ? equals + 3 : NULL;
    }
    s->required = callee->builtin->required;
  } else {
    s->name = op_table[callee->op]->name;
    s->count = op_params(callee->op, s->params, &s->required);
    for (int i = s->required; i < s->count; i++) s->defaults[i] = "false"; /* flags: leaf.c */
  }
}

int signature_find(const struct signature *s, const char *name) {
  for (int i = 0; i < s->count; i++)
    if (strcmp(s->params[i], name) == 0) return i;
  return -1;
}

bool signature_has(const struct signature *s, int i) {
  return s->made && (s->made->args[i].kind != VALUE_NONE || s->made->args[i].at.source);
}

static const char *list_params(struct resolver *r, const struct signature *s) {
  struct str t = str_make(r->arena);
  for (int i = 0; i < s->count; i++)
    str_printf(&t, "%s%s%s%s", i ? ", " : "", s->params[i], i < s->required ? "" : " = ",
               i < s->required  ? ""
               : s->defaults[i] ? s->defaults[i]
                                : "...");
  return t.data;
}

void note_signature(struct resolver *r, const struct signature *s, const struct value *callee) {
  struct loc loc = callee->kind == VALUE_FUNCTION ? callee->function->def->loc : LOC_NONE;
  if (s->made) loc = s->made->function->def->loc;
  report_note(r, loc, "its parameters: %s(%s)", s->name, list_params(r, s));
}

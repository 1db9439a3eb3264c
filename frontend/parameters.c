/* SPDX-License-Identifier: Apache-2.0 */
/* The model's parameters: their defaults, and what the caller set instead. A value is read as what the
 * default is. */
#include "frontend/elsewhere.h"
#include "frontend/resolve.h"

#include <string.h>

/* The text of --set NAME=TEXT as an expression of the language. */
static struct value parse_value(struct resolver *r, const char *text, const struct source *source) {
  const char *program = arena_printf(r->arena, "function value() {\nreturn %s\n}\n", text);
  struct diags d;
  diags_init(&d, r->arena);
  const struct source *s = source_make(r->arena, source->name, program, strlen(program));
  const struct file *file = ast_parse(r->arena, s, &d);
  const struct stmt *only =
      file && file->defs && !file->defs->next && !file->uses ? file->defs->body.first : NULL;
  if (d.nerrors || !only || only->next || only->kind != STMT_RETURN) return value_error();
  return eval(r, only->value, NULL);
}

/* `text` as a value of the kind of `like`. False if it is none. */
static bool typed_value(struct resolver *r, const char *text, const struct source *source,
                        const struct value *like, struct value *out) {
  if (like->kind == VALUE_STRING) {
    *out = (struct value){.kind = VALUE_STRING, .string = text};
    return true;
  }
  struct diags *kept = r->diags, own;
  diags_init(&own, r->arena);
  r->diags = &own;
  *out = parse_value(r, text, source);
  r->diags = kept;
  if (own.nerrors) return false;
  if (like->kind == VALUE_FLOAT && out->kind == VALUE_INT) *out = value_float((double)out->i);
  return out->kind == like->kind || (value_is_callable(out) && value_is_callable(like)) ||
         (like->kind == VALUE_NONE && out->kind != VALUE_ERROR);
}

static const char *kind_name(enum value_kind kind) {
  switch (kind) {
  case VALUE_INT: return "an integer";
  case VALUE_FLOAT: return "a number";
  case VALUE_BOOL: return "true or false";
  case VALUE_LIST: return "a list";
  case VALUE_DTYPE: return "an element type";
  case VALUE_ERROR:
  case VALUE_NONE:
  case VALUE_BATCH:
  case VALUE_STRING:
  case VALUE_TYPE:
  case VALUE_FUNCTION:
  case VALUE_BUILTIN:
  case VALUE_OP:
  case VALUE_MODULE:
  case VALUE_LAYER:
  case VALUE_TENSOR: break;
  }
  return "a value of the same kind";
}

static bool apply_set(struct resolver *r, const struct def *d, const char *set, struct value *values,
                      bool *given) {
  const char *equals = strchr(set, '=');
  const struct source *source = source_make(r->arena, "--set", set, strlen(set));
  struct loc loc = {source, 0, (uint32_t)(equals ? (size_t)(equals - set) : source->len)};
  if (!equals || equals == set) {
    report(r, loc, "a parameter is set by NAME=VALUE, not by `%s`", set);
    return false;
  }
  const char *name = arena_strndup(r->arena, set, (size_t)(equals - set));
  const char **names = arena_new_array(r->arena, (size_t)d->params.count, const char *);
  int i = 0;
  for (const struct param *p = d->params.first; p; p = p->next, i++) {
    names[i] = p->name;
    if (strcmp(p->name, name) != 0) continue;
    struct loc text = {source, loc.end + 1, (uint32_t)source->len};
    struct value v;
    if (given[i]) {
      report(r, loc, "`%s` is set twice", name);
      return false;
    }
    given[i] = true;
    if (!typed_value(r, equals + 1, source, &values[i], &v)) {
      report(r, text, "`%s` must be %s", name, kind_name(values[i].kind));
      report_note(r, p->loc, "it is %s by default", value_text(r->arena, &values[i]));
      return false;
    }
    v.at = text;
    values[i] = v;
    return true;
  }
  report(r, loc, "model `%s` has no parameter `%s`", d->name, name);
  size_t count = (size_t)d->params.count;
  if (elsewhere_name(name, names, count) || str_closest(name, names, count)) {
    report_closest(r, name, names, count);
  } else {
    for (size_t k = 0; k < count; k++) names[k] = arena_printf(r->arena, "`%s`", names[k]);
    report_help(r, count ? "it has %s" : "it has none%s", str_join(r->arena, names, count));
  }
  report_note(r, d->loc, "the model is defined here");
  return false;
}

/* The value is of the parameter's type, if that says one; what would be a tensor stays a number. */
static bool check_type(struct resolver *r, const struct param *p, struct value *v) {
  struct value typed = *v;
  if (!p->type || v->kind == VALUE_NONE) return true;
  if (!match_param(r, p, &typed)) return false;
  if (typed.kind != VALUE_TENSOR) *v = typed;
  return true;
}

/* Binds the parameters in the frame of the model; a default sees the values of the parameters before it. */
bool model_parameters(struct resolver *r, const struct def *d) {
  int n = d->params.count, i = 0;
  bool ok = true;
  struct value *values = arena_new_array(r->arena, (size_t)n, struct value);
  bool *given = arena_new_array(r->arena, (size_t)n, bool);
  for (const struct param *p = d->params.first; p; p = p->next, i++) {
    if (!p->value) {
      report(r, p->loc, "parameter `%s` of a model needs a default", p->name);
      return false;
    }
    values[i] = eval(r, p->value, NULL);
    if (values[i].kind == VALUE_ERROR) return false;
    if (values[i].kind == VALUE_TENSOR) {
      report(r, p->value->loc, "a parameter of a model is known when it is compiled; this is a tensor");
      return false;
    }
    /* Sets of this parameter apply before later defaults are evaluated. */
    for (int k = 0; k < r->options->nsets; k++) {
      const char *set = r->options->sets[k];
      size_t len = strlen(p->name);
      if (strncmp(set, p->name, len) == 0 && set[len] == '=') ok &= apply_set(r, d, set, values, given);
    }
    if (!check_type(r, p, &values[i])) return false;
    bind(r, p->name, p->loc, values[i], true, false);
  }
  for (int k = 0; k < r->options->nsets; k++) {
    const char *set = r->options->sets[k];
    bool known = false;
    for (const struct param *p = d->params.first; p; p = p->next) {
      size_t len = strlen(p->name);
      known |= strncmp(set, p->name, len) == 0 && set[len] == '=';
    }
    if (!known) ok &= apply_set(r, d, set, values, given);
  }
  if (r->model->parameters) return ok;
  r->model->parameters = arena_new_array(r->arena, (size_t)n, struct model_parameter);
  i = 0;
  for (const struct param *p = d->params.first; p; p = p->next, i++)
    r->model->parameters[r->model->nparameters++] =
        (struct model_parameter){p->name, value_text(r->arena, &values[i])};
  return ok;
}

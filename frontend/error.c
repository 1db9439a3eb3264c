/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the resolver. One that arises inside the standard library is shown at the user's own call, with
 * a note that leads inside; one that arises in a layer is followed by the calls that led there. */
#include "frontend/elsewhere.h"
#include "frontend/resolve.h"

#include "ir/ops/op_id.h"

#include <math.h>
#include <string.h>

enum { SHOWN_CALLS = 4 };

bool any_errors(const struct resolver *r) { return r->diags->nerrors > r->errors.before_statements; }

bool told_before(struct resolver *r, struct loc loc, const char *what) {
  const char *where = loc.source ? loc.source->name : "";
  return map_put(&r->errors.told, arena_printf(r->arena, "%s:%u:%s", where, loc.begin, what), r) != NULL;
}

bool is_library(const struct resolver *r, struct loc loc) {
  const struct module *m = loc.source ? map_get(&r->modules.by_name, loc.source->name) : NULL;
  return m && m->library && m->source == loc.source;
}

/* What the library was given where the user called it: there is what can be changed. */
static void note_arguments(struct resolver *r, const struct frame *f) {
  const struct scope *s = f->scope;
  while (s && s->outer) s = s->outer;
  for (const struct param *p = f->function->def->params.first; s && p; p = p->next) {
    const struct binding *b = map_get(&s->names, p->name);
    if (b && b->value.kind == VALUE_TENSOR && !is_library(r, b->value.at)) report_value(r, &b->value);
  }
}

void report(struct resolver *r, struct loc loc, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *message = arena_vprintf(r->arena, fmt, ap);
  va_end(ap);

  const struct frame *f = r->frame, *called = NULL;
  struct loc shown = loc;
  for (; f && is_library(r, shown); f = f->caller) {
    called = f;
    shown = f->call;
  }
  /* Of the errors inside one call of the library the first is told: the others mostly follow from it. */
  const char *where = shown.source ? shown.source->name : "";
  const char *key = called ? arena_printf(r->arena, "%s:%u", where, shown.begin)
                           : arena_printf(r->arena, "%s:%u:%s", where, shown.begin, message);
  r->errors.quiet = r->budget.stopped || map_put(&r->errors.told, key, r) !=
                                             NULL; /* what follows a stop is no mistake of the user's */
  if (r->errors.quiet) return;
  diag_error(r->diags, shown, "%s", message);
  r->errors.inside = false;
  if (called) diag_note(r->diags, loc, "in the standard library here");
  if (called) note_arguments(r, called);
  r->errors.inside = called != NULL;
  for (int i = 0; f && f->caller && i < SHOWN_CALLS; f = f->caller, i++)
    if (!is_library(r, f->call))
      diag_note(r->diags, f->call, "in %s `%s`, used here", def_kind_name(f->function->def->kind),
                f->function->def->name);
}

void report_note(struct resolver *r, struct loc loc, const char *fmt, ...) {
  if (r->errors.quiet) return;
  va_list ap;
  va_start(ap, fmt);
  diag_note(r->diags, loc, "%s", arena_vprintf(r->arena, fmt, ap));
  va_end(ap);
}

void report_help(struct resolver *r, const char *fmt, ...) {
  if (r->errors.quiet) return;
  va_list ap;
  va_start(ap, fmt);
  diag_help(r->diags, LOC_NONE, "%s", arena_vprintf(r->arena, fmt, ap));
  va_end(ap);
}

void report_value(struct resolver *r, const struct value *v) {
  if (v->kind != VALUE_TENSOR || r->errors.inside) return;
  const char *type = type_text(r->arena, &v->tensor.node->type);
  if (v->name && v->decl.source)
    report_note(r, v->decl, "`%s` is %s", v->name, type);
  else
    report_note(r, v->at, "this is %s", type);
}

/* "1" of `broadcast(1, [B])`, whose type is f32; NULL: it is none. */
static const char *number_of_broadcast(struct resolver *r, const struct value *v, enum dtype wanted) {
  const struct node *n = v->tensor.node;
  float value;
  if (!node_is(n, OP_broadcast) || !node_is(n->inputs[0], OP_constant) || n->type.dtype != DT_F32)
    return NULL;
  if (n->inputs[0]->type.rank > 0 || is_library(r, v->at)) return NULL;
  memcpy(&value, node_attr(n->inputs[0], ATTR_value)->data, sizeof value);
  if (wanted == DT_BOOL || (!dtype_is_float(wanted) && rintf(value) != value)) return NULL;
  struct str text = str_make(r->arena);
  str_double(&text, (double)value);
  size_t len = strlen(text.data);
  if (len > 2 && strcmp(text.data + len - 2, ".0") == 0) text.data[len - 2] = 0;
  return text.data;
}

void report_cast(struct resolver *r, const struct value *a, const struct value *b, enum dtype to) {
  if (a->kind != VALUE_TENSOR || b->kind != VALUE_TENSOR) {
    report_help(r, "types are never converted silently: write `cast(x, %s)`", dtype_name(to));
    return;
  }
  enum dtype types[] = {(enum dtype)a->tensor.node->type.dtype, (enum dtype)b->tensor.node->type.dtype};
  const struct value *odd = types[0] == to ? b : a;
  bool named = odd->name && odd->decl.source && !is_library(r, odd->decl);
  const char *number = number_of_broadcast(r, a, types[1]);
  enum dtype wanted = number ? types[1] : types[0];
  if (!number) number = number_of_broadcast(r, b, types[0]);
  if (number)
    report_help(r, "a number alone is f32 in `broadcast`: write `broadcast(cast(%s, %s), shape)`", number,
                dtype_name(wanted));
  else
    report_help(r, "types are never converted silently: write `cast(%s, %s)`", named ? odd->name : "x",
                dtype_name(to));
}

void report_number(struct resolver *r, const struct value *v) {
  if (v->name && v->decl.source && !is_library(r, v->decl))
    report_note(r, v->decl, "`%s` is %s", v->name, value_text(r->arena, v));
}

/* From where a word comes, "tf.where". */
static const char *const libraries[] = {"keras", "tf",    "tensorflow", "torch", "jax",   "jnp",
                                        "np",    "numpy", "flax",       "F",     "optax", "layers",
                                        "optim", "math",  "losses",     "linen"};

static bool is_library_elsewhere(const char *word) {
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
    if (strcmp(libraries[i], word) == 0) return true;
  return false;
}

static bool is_known(struct resolver *r, const char *name) {
  return !scope_find(r, name) && lookup(r, name, false).kind != VALUE_ERROR;
}

/* What is here under the name of a member of a library elsewhere, or of a part of it, as `random` is; NULL: nothing. */
static const char *here_of(struct resolver *r, const struct expr *e) {
  const char *part = e->base->kind == EXPR_MEMBER ? e->base->name : "",
             *small = lower_case(r->arena, e->name);
  const char *random = arena_printf(r->arena, "random_%s", small);
  if (strcmp(part, "random") == 0 && is_known(r, random)) return random;
  const struct module *nn = load_library(r, "nn");
  if (nn && map_get(&nn->names, small)) return arena_printf(r->arena, "nn.%s", small);
  static const char *const types[] = {"f32", "f64", "i32", "i64", "u8", "bool"};
  const char *here = elsewhere_call(e->name);
  if (here || is_known(r, small)) return here ? here : small;
  return elsewhere_name(e->name, types, sizeof types / sizeof *types);
}

bool report_elsewhere(struct resolver *r, const struct expr *e) {
  const struct expr *root = e->base;
  while (root->kind == EXPR_MEMBER) root = root->base;
  if (root->kind != EXPR_NAME || !is_library_elsewhere(root->name) || scope_find(r, root->name)) return false;
  struct value v = lookup(r, root->name, false);
  const char *here = v.kind == VALUE_ERROR ? here_of(r, e) : NULL, *instead = NULL;
  if (v.kind == VALUE_ERROR && !here) instead = elsewhere_instead(e->name, strlen(e->name));
  if (!here && !instead) return false;
  report(r, root->loc, "unknown name `%s`", root->name);
  if (here)
    report_help(r, "here it is `%s`", here);
  else
    report_help(r, "%s", instead);
  return true;
}

void report_closest(struct resolver *r, const char *word, const char *const *names, size_t count) {
  const char *meant = elsewhere_name(word, names, count);
  if (!meant && is_library_elsewhere(word)) {
    report_help(r, "layers are in `nn`, which `use nn` brings; `dgc doc` lists what there is");
    return;
  }
  if (!meant) meant = str_closest(word, names, count);
  if (!r->errors.quiet && meant && strcmp(meant, word) != 0) diag_meant(r->diags, LOC_NONE, word, meant, '`');
}

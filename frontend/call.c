/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: arguments meet parameters, a function of the language runs in a frame of its own. */
#include "frontend/elsewhere.h"
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <string.h>

struct signature {
  const char *what, *name;
  const char **params, **defaults; /* of what is built in; NULL: it must be given */
  int count, required;
  const struct made_layer *made; /* has some of the arguments already */
};

static void signature_of(struct resolver *r, const struct value *callee, struct signature *s) {
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

static int find_param(const struct signature *s, const char *name) {
  for (int i = 0; i < s->count; i++)
    if (strcmp(s->params[i], name) == 0) return i;
  return -1;
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

static void note_signature(struct resolver *r, const struct signature *s, const struct value *callee) {
  struct loc loc = callee->kind == VALUE_FUNCTION ? callee->function->def->loc : LOC_NONE;
  if (s->made) loc = s->made->function->def->loc;
  report_note(r, loc, "its parameters: %s(%s)", s->name, list_params(r, s));
}

/* Whether the layer had its argument i when it was made. */
static bool is_given(const struct signature *s, int i) {
  return s->made && (s->made->args[i].kind != VALUE_NONE || s->made->args[i].at.source);
}

/* The parameter of the next argument without a name. */
static int next_param(const struct signature *s, int *next) {
  while (*next < s->count && is_given(s, *next)) ++*next;
  return (*next)++;
}

static void help_missing(struct resolver *r, const struct signature *s, const struct expr *e,
                         const struct value *callee, const struct arg *const *given, int first) {
  if (first > 0 && help_input_first(r, e, callee)) return;
  if (first == 0 && callee->kind == VALUE_FUNCTION && callee->function->def->kind == DEF_LAYER) {
    report_help(r, "`%s.new(...)` makes a layer that is called later, as often as it is needed",
                callee->function->def->name);
    return;
  }
  const char **missing = arena_new_array(r->arena, (size_t)s->required, const char *);
  int count = 0;
  for (int i = first; i < s->required; i++)
    if (!given[i] && !is_given(s, i)) missing[count++] = s->params[i];
  help_call(r, e, missing, count);
}

/* More arguments than there are. */
static void help_too_many(struct resolver *r, const struct signature *s, const struct value *callee) {
  const char *last = s->count ? s->params[s->count - 1] : "";
  if (callee->kind == VALUE_FUNCTION && callee->function->def->kind == DEF_INITIALIZER)
    report_help(r, r->first_value.type
                       ? "an initializer has the shape of its variable: `var w : f32[3] = zeros()`"
                       : "a tensor of one number is `broadcast(cast(0, f32), shape)`");
  else if (strcmp(last, "shape") == 0 || strcmp(last, "perm") == 0)
    report_help(r, "the numbers of `%s` stand in a list: `[2, 3]`", last);
}

/* The activation whose result the node is, or NULL. */
static const char *activation_of(const struct node *n) {
  const struct trail *t = n->trail;
  if (n->op == OP_sigmoid) return "sigmoid";
  return n->op == OP_div && t && t->callee && strcmp(t->callee, "softmax") == 0 ? t->callee : NULL;
}

/* A function of the library that takes logits would have the activation a second time. */
static void warn_probabilities(struct resolver *r, const struct signature *s, const struct expr *e,
                               const struct value *callee, const struct value *args) {
  if (is_library(r, e->loc)) return;
  if (callee->kind == VALUE_FUNCTION && !is_library(r, callee->function->def->loc)) return;
  for (int i = 0; i < s->count; i++) {
    const char *done = args[i].kind == VALUE_TENSOR ? activation_of(args[i].tensor.node) : NULL;
    if (!done || strcmp(s->params[i], "logits") != 0) continue;
    struct loc at = args[i].at;
    if (told_before(r, at, "logits")) continue;
    diag_warning(r->diags, at, "probabilities are given where logits are wanted: this has been through `%s`",
                 done);
    diag_help(r->diags, LOC_NONE, "`%s` takes values that no `%s` has been taken of", s->name, done);
  }
}

/* A schedule over a part of one step: its arguments stand the other way round. */
static void warn_steps(struct resolver *r, const struct signature *s, const struct expr *e,
                       const struct value *callee, const struct value *args) {
  if (is_library(r, e->loc) || callee->kind != VALUE_FUNCTION || s->count < 2) return;
  if (!is_library(r, callee->function->def->loc) || strcmp(s->params[0], "rate") != 0) return;
  if (strcmp(s->params[1], "steps") != 0 || args[1].kind != VALUE_FLOAT || args[1].f <= 0 || args[1].f >= 1)
    return;
  struct loc at = args[1].at;
  if (told_before(r, at, "steps")) return;
  diag_warning(r->diags, at, "`steps` of `%s` is %s, less than one step", s->name,
               value_text(r->arena, &args[1]));
  diag_help(r->diags, LOC_NONE, "the rate stands first: `%s(rate, steps)`", s->name);
}

/* A function of the library that takes what a model says first, and the labels behind it, as others do not. */
static bool report_turned_round(struct resolver *r, const struct signature *s, const struct expr *e,
                                const struct value *callee, const struct value *args) {
  static const char *const first[] = {"logits", "scores"};
  if (is_library(r, e->loc) || s->count < 2 || callee->kind != VALUE_FUNCTION) return false;
  if (!is_library(r, callee->function->def->loc) || strcmp(s->params[1], "label") != 0) return false;
  bool known = false;
  for (size_t i = 0; i < sizeof first / sizeof *first; i++) known |= strcmp(s->params[0], first[i]) == 0;
  if (!known || args[0].kind != VALUE_TENSOR || args[1].kind != VALUE_TENSOR) return false;
  enum dtype has = args[0].tensor.node->type.dtype;
  if (dtype_is_float(has) || !dtype_is_float(args[1].tensor.node->type.dtype)) return false;
  report(r, args[0].at, "`%s` of `%s` are f32 or f64, not %s", s->params[0], s->name,
         type_text(r->arena, &args[0].tensor.node->type));
  report_value(r, &args[0]);
  report_help(r, "what the model says stands first: `%s(%s, label)`", s->name, s->params[0]);
  return true;
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

/* `making`: the arguments of `new`. */
static bool match_args(struct resolver *r, const struct expr *e, const struct value *callee,
                       const struct role *role, bool making, struct value *out) {
  struct signature signature, *s = &signature;
  signature_of(r, callee, s);
  const struct arg **given = arena_new_array(r->arena, (size_t)s->count + 1, const struct arg *);
  bool ok = true;
  int next = making;
  bool named = false;
  for (const struct arg *a = e->items.first; a; a = a->next) {
    int at = a->name ? find_param(s, a->name) : next_param(s, &next);
    named |= a->name != NULL;
    if (!a->name && named) {
      report(r, a->loc, "arguments without a name stand before those with one");
      return false;
    }
    if (a->name && at < 0) {
      report(r, a->loc, "%s `%s` has no parameter `%s`", s->what, s->name, a->name);
      help_parameter(r, s, a->name);
      note_signature(r, s, callee);
      ok = false;
    } else if (at >= s->count) {
      int most = s->count - making;
      report(r, a->loc, "%s `%s%s` takes %d argument%s, not %d", s->what, s->name, making ? ".new" : "", most,
             most == 1 ? "" : "s", e->items.count);
      note_signature(r, s, callee);
      if (making)
        report_help(r, "what is made takes `%s` when it is called", s->params[0]);
      else
        help_too_many(r, s, callee);
      return false;
    } else if (is_given(s, at)) {
      report(r, a->loc, "`%s` of `%s` was given when the layer was made", s->params[at], s->name);
      report_note(r, s->made->args[at].at, "it was given here");
      ok = false;
    } else if (given[at]) {
      report(r, a->loc, "`%s` of `%s` is given twice", s->params[at], s->name);
      report_note(r, given[at]->loc, "it is given here");
      ok = false;
    } else {
      given[at] = a;
    }
  }
  for (int i = 0; i < s->required && ok && !making; i++) {
    if (given[i] || is_given(s, i)) continue;
    report(r, e->loc, "%s `%s` needs `%s`", s->what, s->name, s->params[i]);
    note_signature(r, s, callee);
    help_missing(r, s, e, callee, given, i);
    ok = false;
  }
  const struct function *f = s->made                          ? s->made->function
                             : callee->kind == VALUE_FUNCTION ? callee->function
                                                              : NULL;
  const struct param *p = f ? f->def->params.first : NULL;
  for (int i = 0; i < s->count; i++, p = p ? p->next : NULL) {
    out[i] = is_given(s, i) ? s->made->args[i] : value_none();
    if (!given[i]) continue;
    if (p && report_called(r, f, p, given[i])) {
      out[i] = value_error();
      ok = false;
      continue;
    }
    struct role inner = {role, s->params[i], 0};
    out[i] = eval(r, given[i]->value, &inner);
    if (out[i].kind == VALUE_ERROR || (p && report_no_function(r, f, p, &out[i])) ||
        report_none(r, s, callee, i, &out[i]))
      ok = false;
  }
  if (ok) warn_probabilities(r, s, e, callee, out);
  if (ok) warn_steps(r, s, e, callee, out);
  return ok && !report_turned_round(r, s, e, callee, out);
}

bool eval_args(struct resolver *r, const struct expr *e, const struct value *callee, const struct role *role,
               struct value *out) {
  return match_args(r, e, callee, role, false, out);
}

bool eval_new_args(struct resolver *r, const struct expr *e, const struct value *of, const struct role *role,
                   struct value *out) {
  return match_args(r, e, of, role, true, out);
}

/* The names that a definition gets besides its parameters. */
static bool bind_implicit(struct resolver *r, const struct def *d, struct loc loc) {
  if (d->kind == DEF_INITIALIZER) {
    if (!r->first_value.type) {
      struct frame *f = r->frame;
      r->frame = f->caller;
      report(r, loc, "`%s` is an initializer: it can only give a variable its first value", d->name);
      report_help(r,
                  "elsewhere a number stands for itself, and numbers become a tensor by `cast([...], f32)`");
      r->frame = f;
      return false;
    }
    struct value shape = {.kind = VALUE_LIST};
    shape.list.count = r->first_value.type->rank;
    shape.list.items = arena_new_array(r->arena, (size_t)shape.list.count, struct value);
    for (int i = 0; i < shape.list.count; i++) shape.list.items[i] = value_dim(r->first_value.type->dim[i]);
    bind(r, "shape", d->loc, shape, true, false);
    bind(r, "dtype", d->loc, value_dtype((enum dtype)r->first_value.type->dtype), true, false);
  }
  if (d->kind == DEF_OPTIMIZER) {
    if (!r->update.variable) {
      struct frame *f = r->frame;
      r->frame = f->caller;
      report(r, loc, "`%s` is an optimizer: it stands behind `with`", d->name);
      report_help(r, "write `train loss with %s(...)`", d->name);
      r->frame = f;
      return false;
    }
    struct value v = value_tensor(r, r->update.variable->node, d->loc);
    v.tensor.variable = r->update.variable;
    bind(r, "variable", r->update.variable->loc, v, true, false);
    bind(r, "gradient", d->loc, value_tensor(r, r->update.gradient, d->loc), true, false);
    bind(r, "name", d->loc, (struct value){.kind = VALUE_STRING, .string = r->update.variable->path}, true,
         false);
    bind(r, "variables", d->loc, *r->update.variables, true, false);
    bind(r, "gradients", d->loc, *r->update.gradients, true, false);
  }
  return true;
}

static bool bind_params(struct resolver *r, const struct def *d, struct value *args) {
  bool ok = true;
  int i = 0;
  for (const struct param *p = d->params.first; p; p = p->next, i++) {
    struct value v = args[i];
    bool given = v.kind != VALUE_NONE || v.at.source;
    if (!given && p->value) {
      const char *path = r->path;
      r->path = binding_path(r, p->name);
      v = eval(r, p->value, NULL);
      r->path = path;
    }
    if (v.kind == VALUE_ERROR || (v.kind == VALUE_NONE && given && !none_fits(r, p, &v)) ||
        (p->type && v.kind != VALUE_NONE && !match_param(r, p, &v))) {
      ok = false;
      v = value_error();
    }
    if (!v.name && v.at.source && v.kind == VALUE_TENSOR) {
      /* Notes then point at the argument, not at the parameter. */
      v.name = p->name;
      v.decl = v.at;
    }
    bind(r, p->name, p->loc, v, true, false);
  }
  return ok;
}

/* Shown where the outermost of these calls begins. */
static void report_recursion(struct resolver *r, const struct function *f, struct loc loc) {
  struct frame *inner = r->frame;
  struct loc first = loc;
  for (struct frame *q = inner; q && q->caller; q = q->caller) {
    if (q->function->def != f->def) continue;
    first = q->call;
    r->frame = q->caller;
  }
  report(r, first, "%s `%s` calls itself without end: calls are nested more than %d deep",
         def_kind_name(f->def->kind), f->def->name, MAX_CALLS);
  if (inner->call.begin != loc.begin || inner->call.source != loc.source)
    report_note(r, inner->call, "by way of this call");
  report_note(r, loc, "it is called again here");
  if (r->errors.quiet) r->budget.stopped = true; /* it branches: told once, and not followed further */
  r->frame = inner;
}

/* As a user writes it. */
static const char *callee_name(struct resolver *r, const struct function *f) {
  bool own = f->module == r->frame->function->module || f->module == r->modules.prelude;
  return own ? f->def->name : arena_printf(r->arena, "%s.%s", f->module->name, f->def->name);
}

static struct value call_defined(struct resolver *r, const struct function *f, struct value *args,
                                 struct loc loc, const char *path, const char *owner, bool *returned) {
  if (r->budget.calls == MAX_CALLS) {
    report_recursion(r, f, loc);
    return value_error();
  }
  const char *saved_path = r->path;
  const struct trail *outer = r->g->at.trail;
  struct trail *trail = arena_new(r->arena, struct trail);
  *trail = (struct trail){outer, loc, callee_name(r, f)};
  r->g->at.trail = r->init->at.trail = trail;
  struct frame frame = {.caller = r->frame,
                        .function = f,
                        .call = loc,
                        .path = path,
                        .owner = owner,
                        .suffix = "",
                        .block = ++r->serial};
  frame.bf16 = r->frame && r->frame->bf16;
  frame.scans = r->frame ? r->frame->scans : 0;
  frame.result = value_none();
  r->frame = &frame;
  r->path = path;
  r->budget.calls++;
  scope_push(r);
  uint32_t mark = r->g->count;
  uint64_t effects = r->effects.count;
  bool ok = bind_implicit(r, f->def, loc) && bind_params(r, f->def, args) && apply_settings(r, f->def);
  if (ok) run_block(r, &f->def->body);
  struct value y = ok ? frame.result : value_error();
  r->budget.calls--;
  r->effects.count = effects; /* what its statements do is no effect of the one that calls */
  r->g->at.trail = r->init->at.trail = outer;
  r->path = saved_path;
  r->frame = frame.caller;
  *returned = ok && frame.returned;
  if (ok && !frame.returned && f->def->kind != DEF_OPTIMIZER && !r->budget.stopped) {
    report(r, loc, "%s `%s` returns nothing", def_kind_name(f->def->kind), f->def->name);
    report_note(r, f->def->loc, "it is defined here");
    return value_error();
  }
  if (y.kind == VALUE_TENSOR && y.tensor.graph == r->g && y.tensor.node->id >= mark && *path &&
      !(op_of(y.tensor.node)->traits & OP_NO_CSE))
    graph_rename(r->g, y.tensor.node, path);
  return y;
}

struct value call_function(struct resolver *r, const struct function *f, struct value *args, struct loc loc,
                           const char *path, const char *owner) {
  bool returned;
  return call_defined(r, f, args, loc, path, owner, &returned);
}

struct value call_optimizer(struct resolver *r, const struct function *f, struct value *args, struct loc loc,
                            const char *path, bool *returned) {
  return call_defined(r, f, args, loc, path, path, returned);
}

struct value eval_call(struct resolver *r, const struct expr *e, const struct role *role) {
  struct value callee;
  if (e->base->kind == EXPR_NAME) {
    callee = lookup(r, e->base->name, true);
    if (!value_is_callable(&callee)) {
      struct binding *b = scope_find(r, e->base->name);
      if (!b || b->value.kind != VALUE_ERROR) report_unknown(r, e->base->loc, e->base->name, true);
      return value_error();
    }
  } else if (report_curried(r, e)) {
    return value_error();
  } else {
    struct value of = is_maker(e->base) ? eval(r, e->base->base, NULL) : value_none();
    if (of.kind == VALUE_FUNCTION) return make_layer(r, e, &of, role);
    callee = of.kind == VALUE_ERROR ? of : eval(r, e->base, NULL);
    if (callee.kind == VALUE_ERROR) {
      help_curried(r, e);
      return callee;
    }
  }
  if (!value_is_callable(&callee)) {
    report(r, e->base->loc, "%s cannot be called", value_describe(r->arena, &callee));
    return value_error();
  }
  if (callee.kind == VALUE_FUNCTION && callee.function->def->kind == DEF_MODEL) {
    report(r, e->base->loc, "a model cannot be called");
    return value_error();
  }
  const struct function *f = callee.kind == VALUE_FUNCTION ? callee.function : NULL;
  if (callee.kind == VALUE_LAYER) f = callee.layer->function;
  struct value few[MAX_GIVEN], *args = few;
  if (f) args = arena_new_array(r->arena, (size_t)f->def->params.count + 1, struct value);
  if (!eval_args(r, e, &callee, role, args)) return value_error();
  build_here(r, e->loc);
  if (callee.kind == VALUE_BUILTIN) return callee.builtin->run(r, args, e->loc, role);
  if (callee.kind == VALUE_OP && op_table[callee.op]->kind == KIND_ELEMENTWISE)
    return elementwise(r, callee.op, args, op_table[callee.op]->min_inputs, e->loc);
  if (callee.kind == VALUE_OP) return op_call(r, callee.op, args, e->loc);
  if (callee.kind == VALUE_LAYER) return call_layer(r, e, callee.layer, args, role);
  const char *path = role_path(r, role), *owner = path;
  if (makes_variables(r, f)) owner = owner_of_call(r, e, f->def->name);
  return call_function(r, f, args, e->loc, path, owner);
}

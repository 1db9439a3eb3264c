/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: a function of the language runs in a frame of its own, where its parameters are bound. */
#include "frontend/resolve.h"

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

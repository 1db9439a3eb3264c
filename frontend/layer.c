/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that are made once and called as often as one likes: `critic = nn.mlp.new([64, 1])`, then `critic(real)` and
 * `critic(fake)`. Their variables are named by the name they have, `critic.part.0.kernel`; the first call of a run
 * declares them, those behind it find them. */
#include "frontend/resolve.h"

#include <string.h>

bool is_maker(const struct expr *callee) {
  return callee->kind == EXPR_MEMBER && strcmp(callee->name, "new") == 0;
}

struct value make_layer(struct resolver *r, const struct expr *e, const struct value *of,
                        const struct role *role) {
  const struct def *d = of->function->def;
  if (d->kind != DEF_LAYER) {
    report(r, e->base->loc, "`new` makes a layer, and `%s` is %s", d->name,
           arena_printf(r->arena, "%s %s",
                        d->kind == DEF_INITIALIZER || d->kind == DEF_OPTIMIZER ? "an" : "a",
                        def_kind_name(d->kind)));
    return value_error();
  }
  struct value *args = arena_new_array(r->arena, (size_t)d->params.count + 1, struct value);
  if (!eval_new_args(r, e, of, role, args)) return value_error();
  struct made_layer *layer = arena_new(r->arena, struct made_layer);
  *layer = (struct made_layer){of->function, args, owner_of_call(r, e, d->name)};
  return (struct value){.kind = VALUE_LAYER, .layer = layer};
}

struct value call_layer(struct resolver *r, const struct expr *e, const struct made_layer *layer,
                        struct value *args, const struct role *role) {
  uint64_t outer = r->turn;
  r->turn = ++r->serial;
  struct value y = call_function(r, layer->function, args, e->loc, role_path(r, role), layer->owner);
  r->turn = outer;
  return y;
}

bool is_declared_again(const struct resolver *r, const struct variable *v, struct loc loc) {
  return r->turn && v->turn != r->turn && v->loc.source == loc.source && v->loc.begin == loc.begin;
}

static struct value part_of(struct resolver *r, const char *owner) {
  struct made_layer *part = arena_new(r->arena, struct made_layer);
  *part = (struct made_layer){.owner = owner};
  return (struct value){.kind = VALUE_LAYER, .layer = part};
}

/* A variable of a layer, or what is bound in it and has variables. VALUE_ERROR (silent) if there is neither. */
static struct value owned(struct resolver *r, const struct made_layer *layer, const char *name) {
  const char *path = arena_printf(r->arena, "%s.%s", layer->owner, name);
  size_t len = strlen(path);
  struct variable *v = map_get(&r->variables.by_path, path);
  if (v && v->run == r->run.number) {
    struct value y = value_tensor(r, v->node, v->loc);
    y.name = name;
    y.decl = v->loc;
    y.tensor.variable = v;
    if (r->g == r->init) y.tensor.graph = NULL;
    return y;
  }
  for (v = r->variables.first; v; v = v->next)
    if (v->run == r->run.number && strncmp(v->path, path, len) == 0 && v->path[len] == '.')
      return part_of(r, path);
  return value_error();
}

static void report_unowned(struct resolver *r, struct loc loc, const struct made_layer *layer,
                           const char *name) {
  size_t len = strlen(layer->owner), n = 0;
  const char **names = arena_new_array(r->arena, r->variables.by_path.count, const char *);
  for (struct variable *v = r->variables.first; v; v = v->next)
    if (v->run == r->run.number && strncmp(v->path, layer->owner, len) == 0 && v->path[len] == '.')
      names[n++] = v->path + len + 1;
  if (!n) {
    report(r, loc, "`%s` has not been called, and its variables are made by its first call", layer->owner);
    if (strcmp(name, "forward") == 0 || strcmp(name, "apply") == 0 || strcmp(name, "call") == 0)
      report_help(r, "a layer is called by its name: `%s(x)`", layer->owner);
    return;
  }
  report(r, loc, "`%s` has no variable `%s`", layer->owner, name);
  report_help(r, "it has %s", str_join(r->arena, names, n));
}

struct value layer_member(struct resolver *r, const struct made_layer *layer, const char *name,
                          struct loc loc) {
  struct value v = owned(r, layer, name);
  if (v.kind == VALUE_ERROR) report_unowned(r, loc, layer, name);
  return v;
}

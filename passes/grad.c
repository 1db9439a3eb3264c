/* grad: expands `gradient` nodes by reverse-mode differentiation.
 *
 * Walks from the loss towards the variables once per loss; every op adds to its operands' gradients by its own
 * rule, in ordinary nodes. Only values that depend on a wanted variable get a gradient, so none is computed for
 * the inputs. The gradient of x is called x.grad. A variable that the loss does not depend on has no gradient:
 * what would need it is dropped.
 *
 * With losses scaled per tower a tower's loss is that of its own rows: it and its gradients are joined over the towers,
 * as their mean, or as their sum if the loss is a sum.
 *
 * Requires: stage source. Guarantees: no gradient and no stop_gradient node is left. */
#include "passes/rebuild.h"
#include "passes/strategy.h"

#include <string.h>

struct walk {
  struct node **grads; /* by node id of the graph being built */
  uint8_t *needed;     /* depends on a wanted variable */
};

static bool is_gradient_name(const char *name) {
  size_t len = strlen(name);
  return len > 5 && strcmp(name + len - 5, ".grad") == 0;
}

static void accumulate(struct grad *c, const struct node *n, int input, struct node *d) {
  struct walk *w = c->state;
  struct node *x = n->inputs[input];
  if (!w->needed[x->id] || !d) return;
  struct node *sum = w->grads[x->id];
  if (sum) {
    const char *scope = c->g->scope;
    c->g->scope = arena_printf(c->g->arena, "%s.grad", x->name);
    d = build2(c->g, OP_add, sum, d);
    c->g->scope = scope;
  }
  w->grads[x->id] = d;
}

/* Which of the first `count` nodes depend on one of the variables that `loss` is differentiated by. */
static uint8_t *needed_nodes(struct arena *a, const struct graph *g, const struct graph *from,
                             struct node *const *map, const struct node *loss, uint32_t count) {
  uint8_t *needed = arena_new_array(a, count + 1, uint8_t);
  for (uint32_t i = 0; i < from->count; i++) {
    const struct node *n = from->nodes[i];
    if (n->op != OP_gradient || n->inputs[0] != loss) continue;
    const struct node *x = map[n->inputs[1]->id];
    if (x && x->id < count) needed[x->id] = 1;
  }
  for (uint32_t i = 0; i < count; i++) {
    const struct node *n = g->nodes[i];
    if ((op_of(n)->traits & OP_NO_GRADIENT) || !op_of(n)->grad) continue;
    for (int k = 0; k < n->ninputs; k++)
      if (needed[n->inputs[k]->id] && dtype_is_float(n->type.dtype)) needed[i] = 1;
  }
  return needed;
}

/* Gradients of `loss` (a node of g) by everything in `needed`: one walk from the loss down. */
static struct node **differentiate(struct pass_ctx *ctx, struct graph *g, struct node *loss,
                                   uint8_t *needed) {
  uint32_t count = loss->id + 1;
  struct walk w = {.grads = arena_new_array(ctx->scratch, count, struct node *), .needed = needed};
  struct grad c = {.g = g, .state = &w, .add = accumulate};
  struct build_context saved = build_save(g);
  if (needed[loss->id]) {
    build_at(g, loss);
    g->scope = arena_printf(g->arena, "%s.grad", loss->name);
    w.grads[loss->id] = build_scalar(g, loss->type.dtype, 1);
  }
  for (uint32_t i = count; i-- > 0;) {
    struct node *n = g->nodes[i], *dy = w.grads[i];
    if (!dy) continue;
    /* What goes straight through bears the name of what it comes to. */
    if (dy->id >= count && n->op != OP_round_bf16 && !is_gradient_name(dy->name) && dy->op != OP_constant)
      graph_rename(g, dy, arena_printf(g->arena, "%s.grad", n->name));
    if (!op_of(n)->grad) continue;
    build_at(g, n);
    g->scope = arena_printf(g->arena, "%s.grad", n->name);
    op_of(n)->grad(&c, n, dy);
  }
  build_restore(g, &saved);
  return w.grads;
}

struct loss_grads {
  const struct node *loss; /* in the source graph */
  struct node **grads;
  uint32_t count;
  struct loss_grads *next;
};

/* Whether the rows come to the loss by additions alone. */
static bool is_sum(const struct node *n, int depth) {
  bool sum = false;
  if (type_is_symbolic(&n->type) || n->op == OP_batch_size || depth > 100) return false;
  if (n->op == OP_reduce_sum || n->op == OP_matmul)
    for (int i = 0; i < n->ninputs; i++) sum |= type_is_symbolic(&n->inputs[i]->type);
  if (sum) return true;
  bool linear =
      n->op == OP_add || n->op == OP_sub || n->op == OP_neg || n->op == OP_mul || n->op == OP_reshape;
  for (int i = 0; linear && i < n->ninputs; i++) sum |= is_sum(n->inputs[i], depth + 1);
  return sum;
}

/* What towers have of a loss, or of its gradient by x. */
static struct node *of_towers(struct graph *out, const struct node *loss, struct node *n,
                              const struct node *x) {
  if (!n || !scales_per_tower(&out->config)) return n;
  struct attr attrs[2] = {attr_string(ATTR_reduction, is_sum(loss, 0) ? "sum" : "mean"),
                          attr_int(ATTR_each, 1)};
  const char *name = x ? arena_printf(out->arena, "gradient_aggregating/%s", x->name)
                       : arena_printf(out->arena, "%s.scaled", n->name);
  build_at(out, x ? x : n);
  return build_named(out, name, OP_aggregate, 1, &n, 2, attrs, NULL);
}

/* The nodes of g in a new graph, gradients expanded. */
static struct graph *expand(struct pass_ctx *ctx, struct graph *g) {
  struct graph *out = graph_create_like(ctx->arena, g);
  struct node **map = arena_new_array(ctx->scratch, g->count + 1, struct node *);
  struct loss_grads *losses = NULL;
  /* The forward graph first, so that a walk sees all of it; gradients and what reads them after. */
  uint8_t *late = arena_new_array(ctx->scratch, g->count + 1, uint8_t);
  for (int round = 0; round < 2; round++)
    for (uint32_t i = 0; i < g->count; i++) {
      struct node *n = g->nodes[i];
      if (round == 0) {
        late[i] = n->op == OP_gradient;
        for (int k = 0; k < n->ninputs; k++) late[i] |= late[n->inputs[k]->id];
      }
      if (late[i] != round) continue;
      if (n->op == OP_gradient) {
        struct node *loss = map[n->inputs[0]->id], *x = map[n->inputs[1]->id];
        struct loss_grads *l = losses;
        while (l && l->loss != n->inputs[0]) l = l->next;
        if (!l) {
          l = arena_new(ctx->scratch, struct loss_grads);
          *l = (struct loss_grads){.loss = n->inputs[0], .count = loss->id + 1, .next = losses};
          losses = l;
          uint8_t *needed = needed_nodes(ctx->scratch, out, g, map, l->loss, l->count);
          l->grads = differentiate(ctx, out, loss, needed);
        }
        map[i] = x->id < l->count ? of_towers(out, l->loss, l->grads[x->id], x) : NULL;
        continue;
      }
      struct node **in = arena_new_array(ctx->scratch, (size_t)n->ninputs + 1, struct node *);
      bool whole = true;
      for (int k = 0; k < n->ninputs; k++) whole &= (in[k] = map[n->inputs[k]->id]) != NULL;
      if (whole && !(map[i] = build_like(out, n, in, NULL))) return NULL;
    }
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    struct node *n = map[o->node->id];
    if (n && o->role == OUTPUT_LOSS) n = of_towers(out, o->node, n, NULL);
    if (n)
      graph_add_output(out, o->role, o->name, n, o->count);
    else if (o->role != OUTPUT_UPDATE) {
      diag_error(ctx->diags, o->node->loc, "%s is a gradient by a variable that the loss does not depend on",
                 o->name);
      return NULL;
    }
  }
  return out;
}

/* stop_gradient has done its work. */
static struct node *strip(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                          void *user) {
  (void)ctx, (void)user;
  return n->op == OP_stop_gradient ? in[0] : build_like(out, n, in, NULL);
}

struct graph *pass_grad(struct pass_ctx *ctx, struct graph *g) {
  bool any = false;
  for (uint32_t i = 0; i < g->count; i++)
    any |= g->nodes[i]->op == OP_gradient || g->nodes[i]->op == OP_stop_gradient;
  if (!any) return g;
  struct arena_guard guard;
  struct pass_ctx inner = *ctx;
  inner.arena = arena_create_guarded(&guard);
  struct graph *out = expand(&inner, g);
  if (out) out = rebuild(&inner, out, NULL, strip, NULL);
  /* Without stop_gradient between them more nodes fold. */
  if (out) out = pass_simplify(ctx, out);
  arena_destroy_guarded(inner.arena, &guard);
  return out;
}

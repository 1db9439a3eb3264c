/* SPDX-License-Identifier: Apache-2.0 */
/* grad: expands `gradient` nodes by reverse-mode differentiation, all of one loss in one walk. The gradient of x is
 * called x.grad. A variable that the loss does not depend on has no gradient: what would need it is dropped.
 *
 * With losses scaled per tower a tower's loss is that of its own rows: it and its gradients are joined over the towers,
 * as their mean, or as their sum if the rows come to the loss by additions alone; what is that in part has no rule.
 *
 * Requires: stage source. Guarantees: no gradient and no stop_gradient node is left. */
#include "ir/graph/differentiate.h"
#include "ir/graph/text.h"
#include "ir/ops/op_id.h"
#include "ir/ops/spread.h"
#include "passes/rebuild.h"
#include "passes/strategy/strategy.h"

/* What a value is of a tower's rows, or of how many there are. Each is what a value may be that is made of those before
 * it: a sum of rows and what is no sum of them have none of both. */
enum of_rows { NOT_OF_ROWS, SUM_OF_ROWS, OF_ROWS, SUM_AND_OTHERS };

/* Sums, and what is the same for all towers, added up. */
static enum of_rows of_terms(const struct node *n, const uint8_t *of) {
  bool sums = false, others = false;
  for (int k = 0; k < n->ninputs; k++) {
    uint8_t x = of[n->inputs[k]->id];
    sums |= x == SUM_OF_ROWS || x == SUM_AND_OTHERS;
    others |= x == OF_ROWS || x == SUM_AND_OTHERS;
  }
  return sums && others ? SUM_AND_OTHERS : sums ? SUM_OF_ROWS : others ? OF_ROWS : NOT_OF_ROWS;
}

/* Of two factors, of which a sum may be one. */
static enum of_rows of_factors(const struct node *n, const uint8_t *of) {
  enum of_rows a = of[n->inputs[0]->id], b = of[n->inputs[1]->id];
  if (b == NOT_OF_ROWS) return a;
  return a == NOT_OF_ROWS && n->op != OP_div ? b : OF_ROWS;
}

static enum of_rows of_node(const struct node *n, const uint8_t *of) {
  bool any = n->op == OP_batch_size, rows = false;
  for (int k = 0; k < n->ninputs; k++) {
    any |= of[n->inputs[k]->id] != NOT_OF_ROWS;
    rows |= type_is_symbolic(&n->inputs[k]->type);
  }
  if (type_is_symbolic(&n->type)) return OF_ROWS;
  if (rows) return node_spread(n, NULL) == SPREAD_SUM ? SUM_OF_ROWS : OF_ROWS;
  if (!any) return NOT_OF_ROWS;
  if (n->op == OP_mul || n->op == OP_div || (node_adds_up(n) && n->ninputs == 2)) return of_factors(n, of);
  bool linear = node_adds_up(n) || n->op == OP_add || n->op == OP_sub || n->op == OP_neg ||
                op_of(n)->kind == KIND_MOVEMENT || n->op == OP_cast;
  return linear ? of_terms(n, of) : OF_ROWS;
}

static uint8_t *find_of_rows(struct arena *a, const struct graph *g) {
  uint8_t *of = arena_new_array(a, g->count + 1, uint8_t);
  for (uint32_t i = 0; i < g->count; i++) of[i] = (uint8_t)of_node(g->nodes[i], of);
  return of;
}

/* What towers have of a loss, or of its gradient by x. */
static struct node *of_towers(struct graph *out, bool is_sum, struct node *n, const struct node *x) {
  if (!n || !scales_per_tower(&out->config)) return n;
  struct attr attrs[2] = {attr_string(ATTR_reduction, is_sum ? "sum" : "mean"), attr_int(ATTR_each, 1)};
  const char *name = x ? arena_printf(out->arena, TEXT_GRADIENT_SUM "%s", x->name)
                       : arena_printf(out->arena, "%s.scaled", n->name);
  build_at(out, x ? x : n);
  out->at.backward = x != NULL;
  struct node *sum = build_named(out, name, OP_aggregate, 1, &n, 2, attrs, NULL);
  if (sum && x) sum->gradient_of = x->name;
  return sum;
}

/* The gradients of one loss: those of its variables, in the order in which they stand. */
struct wanted {
  uint32_t *next;         /* by gradient node: the next one of its loss, + 1 */
  uint32_t *first, *last; /* by loss, + 1 */
};

static struct wanted list_wanted(struct arena *a, const struct graph *g) {
  struct wanted w = {arena_new_array(a, g->count + 1, uint32_t), arena_new_array(a, g->count + 1, uint32_t),
                     arena_new_array(a, g->count + 1, uint32_t)};
  for (uint32_t i = 0; i < g->count; i++) {
    if (g->nodes[i]->op != OP_gradient) continue;
    uint32_t loss = g->nodes[i]->inputs[0]->id;
    *(w.last[loss] ? &w.next[w.last[loss] - 1] : &w.first[loss]) = i + 1;
    w.last[loss] = i + 1;
  }
  return w;
}

/* The expansion: from `g` to `out`. */
struct expansion {
  struct graph *g, *out;
  struct node **map;   /* by node of g */
  struct node **found; /* by gradient node of g: the gradient */
  struct wanted wanted;
  const uint8_t *of_rows; /* by node of g */
  struct differentiation differentiation;
};

/* All gradients of the loss `of` at once. */
static void expand_loss(struct arena *a, struct expansion *e, const struct node *of) {
  int count = 0;
  for (uint32_t i = e->wanted.first[of->id]; i; i = e->wanted.next[i - 1]) count++;
  struct node **x = arena_new_array(a, (size_t)count, struct node *);
  struct node **dx = arena_new_array(a, (size_t)count, struct node *);
  count = 0;
  for (uint32_t i = e->wanted.first[of->id]; i; i = e->wanted.next[i - 1])
    if (e->map[e->g->nodes[i - 1]->inputs[1]->id]) x[count++] = e->map[e->g->nodes[i - 1]->inputs[1]->id];
  differentiate(&e->differentiation, e->out, e->map[of->id], count, x, dx);
  count = 0;
  for (uint32_t i = e->wanted.first[of->id]; i; i = e->wanted.next[i - 1])
    if (e->map[e->g->nodes[i - 1]->inputs[1]->id]) e->found[i - 1] = dx[count++];
}

/* By node: whether it reads a gradient. */
static uint8_t *find_readers(struct arena *a, const struct graph *g) {
  uint8_t *reads_gradient = arena_new_array(a, g->count + 1, uint8_t);
  for (uint32_t i = 0; i < g->count; i++) {
    reads_gradient[i] = g->nodes[i]->op == OP_gradient;
    for (int k = 0; k < g->nodes[i]->ninputs; k++)
      reads_gradient[i] |= reads_gradient[g->nodes[i]->inputs[k]->id];
  }
  return reads_gradient;
}

/* Node i of g in the new graph; without one where it reads a gradient that is not there. False after an error. */
static bool expand_node(struct pass_ctx *ctx, struct expansion *e, uint32_t i, uint8_t *done) {
  const struct node *n = e->g->nodes[i];
  if (n->op == OP_gradient) {
    const struct node *of = n->inputs[0], *x = e->map[n->inputs[1]->id];
    if (!done[of->id] && e->map[of->id]) {
      done[of->id] = 1;
      expand_loss(ctx->scratch, e, of);
    }
    e->map[i] = of_towers(e->out, e->of_rows[of->id] == SUM_OF_ROWS, e->found[i], x);
    return true;
  }
  struct node **in = arena_new_array(ctx->scratch, (size_t)n->ninputs + 1, struct node *);
  bool whole = true;
  for (int k = 0; k < n->ninputs; k++) whole &= (in[k] = e->map[n->inputs[k]->id]) != NULL;
  return !whole || (e->map[i] = build_like(e->out, n, in, NULL)) != NULL;
}

/* False after an error: a loss is joined over the towers neither as a sum nor as a mean. */
static bool losses_are_joined(struct pass_ctx *ctx, const struct graph *g, const uint8_t *of_rows) {
  for (uint32_t i = 0; i < g->count && scales_per_tower(&g->config); i++) {
    const struct node *n = g->nodes[i];
    if (n->op != OP_gradient || of_rows[n->inputs[0]->id] != SUM_AND_OTHERS) continue;
    diag_error(ctx->diags, n->inputs[0]->loc,
               "this loss is a sum over the rows in part: with losses scaled per tower it has no one scale");
    diag_help(ctx->diags, n->inputs[0]->loc,
              "write all of it by sum, or by mean, or leave --loss-scaling per_tower out");
    return false;
  }
  return true;
}

/* The nodes of g in a new graph, gradients expanded. */
static struct graph *expand(struct pass_ctx *ctx, struct graph *g) {
  struct graph *out = graph_create_like(ctx->arena, g);
  struct node **map = arena_new_array(ctx->scratch, g->count + 1, struct node *);
  struct expansion e = {.g = g,
                        .out = out,
                        .map = map,
                        .found = arena_new_array(ctx->scratch, g->count + 1, struct node *),
                        .wanted = list_wanted(ctx->scratch, g),
                        .of_rows = find_of_rows(ctx->scratch, g),
                        .differentiation = {.arena = ctx->scratch, .suffix = "grad", .backward = true}};
  if (!losses_are_joined(ctx, g, e.of_rows)) return NULL;
  /* The forward graph first, so that a walk sees all of it; gradients and what reads them after. */
  const uint8_t *reads_gradient = find_readers(ctx->scratch, g);
  uint8_t *done = arena_new_array(ctx->scratch, g->count + 1, uint8_t);
  for (int round = 0; round < 2; round++)
    for (uint32_t i = 0; i < g->count; i++)
      if (reads_gradient[i] == round && !expand_node(ctx, &e, i, done)) return NULL;
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    struct node *n = map[o->node->id];
    if (n && o->role == OUTPUT_LOSS) n = of_towers(out, e.of_rows[o->node->id] == SUM_OF_ROWS, n, NULL);
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
  int before = ctx->diags->nerrors;
  inner.arena = arena_create_guarded(&guard);
  struct graph *out = expand(&inner, g);
  if (ctx->diags->nerrors > before) out = NULL; /* a gradient that cannot be built is not none */
  if (out) out = rebuild(&inner, out, NULL, strip, NULL);
  /* Without stop_gradient between them more nodes fold. */
  if (out) out = pass_simplify(ctx, out);
  arena_destroy_guarded(inner.arena, &guard);
  return out;
}

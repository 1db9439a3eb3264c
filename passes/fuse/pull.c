/* SPDX-License-Identifier: Apache-2.0 */
/* A cheap value that another device reads through an alias is computed again by that device, from the same operands,
 * which saves a wait.
 *
 * So the devices do not wait for the sum of two towers' gradients: each device adds and updates its copy of the
 * variable by itself as soon as both gradients are there, with the same additions in the same order. It reads no more
 * memory than before as long as there are two values to read at most. */
#include "ir/ops/op_id.h"
#include "passes/fuse/fuse.h"
#include "passes/rebuild.h"

enum { CHEAP = 4, MAX_SOURCES = 2, MAX_DEPTH = 3 };

/* Instructions of a scalar body; division and roots count more. */
static int scalar_cost(struct fuse_cost *c, const struct node *n) {
  struct sprog p = sprog_make(c->scratch);
  sval in[3] = {0};
  for (int i = 0; i < n->ninputs; i++) in[i] = s_arg(&p, i, (enum dtype)n->inputs[i]->type.dtype);
  op_of(n)->scalar(&p, n, in);
  int cost = 0;
  for (int i = 0; i < p.count; i++) {
    enum sop op = (enum sop)p.inst[i].op;
    cost += op != S_ARG && op != S_CONST;
    if (op == S_DIV || op == S_REM || op == S_SQRT) cost += 2 * CHEAP;
  }
  return cost;
}

bool fuse_is_cheap(struct fuse_cost *c, const struct node *n) {
  if (op_of(n)->kind != KIND_ELEMENTWISE) return false;
  if (n->op == OP_identity && n->dist != n->inputs[0]->dist)
    return false; /* it says what the value is from here on */
  uint8_t *known = &c->known[n->op][n->inputs[0]->type.dtype];
  if (!*known) *known = scalar_cost(c, n) <= CHEAP ? 2 : 1;
  return *known == 2;
}

static bool is_alias(const struct node *n) { return n->op == OP_copy && node_int_or(n, ATTR_alias, 0); }

static bool is_filler(const struct node *n) {
  return node_is_immediate(n) || (n->op == OP_broadcast && node_is_immediate(n->inputs[0]));
}

/* Values to be read if x is computed again down to `depth`; more than MAX_SOURCES is too many. */
static int sources(struct fuse_cost *c, const struct node *x, int depth) {
  while (is_alias(x)) x = x->inputs[0];
  if (is_filler(x)) return 0;
  if (depth == 0 || !fuse_is_cheap(c, x)) return 1;
  int count = 0;
  for (int i = 0; i < x->ninputs && count <= MAX_SOURCES; i++) count += sources(c, x->inputs[i], depth - 1);
  return count;
}

static struct node *again(struct pass_ctx *ctx, struct fuse_cost *c, struct graph *out, struct node *x,
                          int device, int depth, const char *name) {
  while (is_alias(x)) x = x->inputs[0];
  if (x->device == device) return x;
  bool source = !is_filler(x) && (depth == 0 || !fuse_is_cheap(c, x));
  struct node *in[3] = {x};
  for (int i = 0; i < x->ninputs && !source; i++)
    if (!(in[i] = again(ctx, c, out, x->inputs[i], device, depth - 1, NULL))) return NULL;
  build_at(out, x);
  out->at.device = device;
  out->at.want = NULL;
  out->at.why = (struct reason){.rule = source ? arena_printf(out->arena, "%s -> %s",
                                                              out->config.target.devices[x->device].text,
                                                              out->config.target.devices[device].text)
                                               : "cheap -> where it is read"};
  if (!name) name = arena_printf(out->arena, "%s.copy_%d", x->name, device);
  struct attr alias = attr_int(ATTR_alias, 1);
  if (source) return build_named(out, name, OP_copy, 1, in, 1, &alias, NULL);
  return build_named(out, name, x->op, x->ninputs, in, x->nattrs, x->attrs, &x->type);
}

static struct node *visit(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                          void *user) {
  struct fuse_cost *c = (struct fuse_cost *)(uintptr_t)user;
  if (is_alias(n) && fuse_is_cheap(c, in[0])) {
    for (int depth = MAX_DEPTH; depth > 0; depth--)
      if (sources(c, in[0], depth) <= MAX_SOURCES)
        return again(ctx, c, out, in[0], n->device, depth, n->name);
  }
  return graph_node_like(out, n, in);
}

struct graph *fuse_pull(struct pass_ctx *ctx, struct graph *g) {
  struct fuse_cost c = {.scratch = ctx->scratch};
  bool any = false;
  for (uint32_t i = 0; i < g->count && !any; i++)
    any = is_alias(g->nodes[i]) && fuse_is_cheap(&c, g->nodes[i]->inputs[0]);
  return any ? rebuild(ctx, g, NULL, visit, &c) : g;
}

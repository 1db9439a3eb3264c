/* SPDX-License-Identifier: Apache-2.0 */
/* What a step of a loop rounds, and the loop stacks for products of bfloat16 and for kernels behind it, is stacked in
 * 16 bits: half the bytes, and what products read need not be made of it again. The numbers are the same: a cast rounds
 * as the op does, and its readers widen it or multiply it as it lies. */
#include "ir/ops/op_id.h"
#include "ir/ops/scan.h"
#include "passes/fuse/fuse.h"
#include "passes/rebuild.h"

struct stacks {
  uint8_t **types; /* by scan, by result: the type that it is stacked in; DT_F32: as it is; REFUSED */
};

enum { REFUSED = DT_COUNT };

/* Whether all that reads n, be it reshaped, is a product or reads element by element. */
static bool is_readable(const struct graph *g, const struct users *users, const uint8_t *live,
                        const uint8_t *is_output, const struct node *n) {
  if (is_output[n->id]) return false;
  for (uint32_t i = users->first[n->id]; i < users->first[n->id + 1]; i++) {
    const struct node *u = users->users[i];
    if (!live[u->id]) continue;
    bool good = u->device == n->device && (fuse_is_product(g, u, u->device) || fuse_is_kernel(u));
    if (!good && !(u->op == OP_reshape && is_readable(g, users, live, is_output, u))) return false;
  }
  return true;
}

/* The type in which a result of a loop may lie. */
static enum dtype narrow_type(const struct graph *g, const struct node *output, const struct scan *loop) {
  int result = (int)node_int(output, ATTR_index);
  if (result < loop->carries || !fuse_is_here(g, output->inputs[0])) return DT_F32;
  return op_of(loop->body->outputs[result].node)->narrow;
}

static bool find_stacks(struct pass_ctx *ctx, const struct graph *g, struct stacks *s) {
  const uint8_t *live = graph_live(ctx->scratch, g);
  struct users users = graph_users(ctx->scratch, g);
  uint8_t *is_output = arena_new_array(ctx->scratch, g->count + 1, uint8_t);
  bool any = false;
  s->types = arena_new_array(ctx->scratch, g->count + 1, uint8_t *);
  for (int i = 0; i < g->noutputs; i++) is_output[g->outputs[i].node->id] = 1;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i], *scan = n->op == OP_output ? n->inputs[0] : NULL;
    if (!live[i] || !scan || scan->op != OP_scan) continue;
    struct scan loop = scan_of(scan);
    enum dtype d = narrow_type(g, n, &loop);
    if (d == DT_F32) continue;
    if (!s->types[scan->id])
      s->types[scan->id] = arena_new_array(ctx->scratch, (size_t)node_results(scan), uint8_t);
    uint8_t *type = &s->types[scan->id][node_int(n, ATTR_index)];
    if (*type == REFUSED || !is_readable(g, &users, live, is_output, n))
      *type = REFUSED;
    else
      *type = (uint8_t)d, any = true;
  }
  return any;
}

static bool is_narrow(const uint8_t *types, int result) {
  return types && types[result] != DT_F32 && types[result] != REFUSED;
}

static struct graph *body_of(struct pass_ctx *ctx, const struct graph *body, const uint8_t *types) {
  struct graph *out = graph_create_like(ctx->arena, body);
  struct node **made = arena_new_array(ctx->scratch, body->count + 1, struct node *);
  graph_copy_nodes(ctx->scratch, out, body, NULL, made, NULL, NULL);
  for (int i = 0; i < body->noutputs; i++) {
    const struct node *n = body->outputs[i].node;
    struct node *x = made[n->id];
    build_at(out, n);
    if (is_narrow(types, i) && !(x = build_cast(out, made[n->inputs[0]->id], (enum dtype)types[i])))
      return NULL;
    graph_add_output(out, OUTPUT_VALUE, body->outputs[i].name, x, 0);
  }
  return out;
}

static struct node *visit(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                          void *user) {
  const struct stacks *s = user;
  const uint8_t *types = s->types[n->op == OP_output ? n->inputs[0]->id : n->id];
  if (n->op == OP_scan && types) {
    struct graph *body = body_of(ctx, scan_of(n).body, types);
    return body ? scan_like(out, n, in, body) : NULL;
  }
  if (n->op != OP_output || !is_narrow(types, (int)node_int(n, ATTR_index)))
    return graph_node_like(out, n, in);
  struct node narrow = *n;
  narrow.inputs = in;
  narrow.type.dtype = types[node_int(n, ATTR_index)];
  return build_cast(out, graph_node(out, &narrow), DT_F32);
}

struct graph *fuse_stacks(struct pass_ctx *ctx, struct graph *g) {
  struct stacks s;
  if (!graph_has_op(g, OP_scan) || !find_stacks(ctx, g, &s)) return g;
  return rebuild(ctx, g, NULL, visit, &s);
}

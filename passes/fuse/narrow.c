/* SPDX-License-Identifier: Apache-2.0 */
/* What a CPU multiplies as bfloat16 it stores so, and a GPU what cuBLAS multiplies, which else takes TF32 for it:
 * half the bytes, and no conversion beside the product. Rounding is part of the cast, and both join the kernel that
 * computes the operand.
 *
 * Only here, where each value has its device: whatever else reads the value rounds it for itself, and nothing that
 * crosses devices is of this type. */
#include "ir/ops/op_id.h"
#include "passes/fuse/fuse.h"
#include "passes/rebuild.h"

#include <string.h>

static bool is_narrowed(const struct graph *g, const struct node *n) {
  if (!node_attr(n, ATTR_precision)) return false;
  const char *kind = g->config.target.devices[n->device].name.kind;
  return strcmp(kind, "cpu") == 0 || (strcmp(kind, "gpu") == 0 && node_is(n, OP_matmul));
}

static bool is_moved(const struct node *x) {
  return node_is(x, OP_reshape) || node_is(x, OP_transpose) || node_is(x, OP_broadcast);
}

/* x before it was rounded, moved as x is; NULL: it was not. */
static struct node *unrounded(struct graph *out, struct node *x) {
  if (node_is(x, OP_round_bf16)) return x->inputs[0];
  struct node *from = is_moved(x) ? unrounded(out, x->inputs[0]) : NULL;
  if (from == NULL) return NULL;
  build_at(out, x);
  return build(out, x->op, 1, &from, x->nattrs, x->attrs, &x->type);
}

static struct node *narrowed(struct graph *out, const struct node *n, struct node *x) {
  struct node *wide = unrounded(out, x);
  build_at(out, x);
  out->at.device = n->device;
  out->at.want = NULL;
  return build_cast(out, wide ? wide : x, DT_BF16);
}

static struct node *visit(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                          void *user) {
  (void)ctx, (void)user;
  struct node same = *n;
  struct attr attrs[ATTR_COUNT];
  same.inputs = in;
  if (!is_narrowed(out, n)) return graph_node(out, &same);
  same.nattrs = 0;
  same.attrs = attrs;
  for (int i = 0; i < n->nattrs; i++)
    if (n->attrs[i].key != ATTR_precision) attrs[same.nattrs++] = n->attrs[i];
  for (int i = 0; i < n->ninputs; i++)
    if (!(in[i] = narrowed(out, n, in[i]))) return NULL;
  return graph_node(out, &same);
}

struct graph *fuse_narrow(struct pass_ctx *ctx, struct graph *g) {
  bool any = false;
  for (uint32_t i = 0; i < g->count && !any; i++) any = is_narrowed(g, g->nodes[i]);
  return any ? rebuild(ctx, g, NULL, visit, NULL) : g;
}

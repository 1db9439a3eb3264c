/* copies: where an edge crosses devices, one copy per value and destination, reused by later readers there.
 *
 * Between devices that share a memory the copy is an alias: it stays in the graph, and nothing moves.
 *
 * Requires: stage placed. Guarantees: only a copy reads a value of another device. */
#include "passes/rebuild.h"

static struct node *copy_to(struct graph *out, struct node *x, int device) {
  const struct device *devices = out->config.target.devices;
  build_at(out, x);
  out->device = device;
  out->want = NULL;
  out->why = arena_printf(out->arena, "%s -> %s", devices[x->device].text, devices[device].text);
  struct attr alias = attr_int(ATTR_alias, 1);
  bool shared = devices[x->device].memory == devices[device].memory;
  /* Equal copies are one node. */
  return build_named(out, arena_printf(out->arena, "%s.copy_%d", x->name, device), OP_copy, 1, &x, shared,
                     &alias, NULL);
}

static struct node *bring(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                          void *user) {
  (void)ctx, (void)user;
  for (int k = 0; k < n->ninputs; k++)
    if (n->op != OP_copy && in[k]->device != n->device) in[k] = copy_to(out, in[k], n->device);
  struct node same = *n;
  same.inputs = in;
  return graph_node(out, &same);
}

struct graph *pass_copies(struct pass_ctx *ctx, struct graph *g) {
  return rebuild(ctx, g, NULL, bring, NULL);
}

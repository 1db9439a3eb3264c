/* SPDX-License-Identifier: Apache-2.0 */
/* copies: where an edge crosses devices, one copy per value and destination, reused by later readers there.
 *
 * Between devices that share a memory the copy is an alias: it stays in the graph, and nothing moves. So a value
 * crosses once into each memory: where another device there has a copy already, the next one is its alias. An
 * identity whose operand lies on another device is a relay, a copy that collectives asked for: it becomes that copy.
 *
 * Requires: stage placed. Guarantees: only a copy reads a value of another device, or what the devices do together. */
#include "ir/ops/op.h"
#include "ir/ops/op_id.h"
#include "passes/rebuild.h"

#include <string.h>

/* By device: the next one that shares its memory, -1 behind the last. The first one is the memory's number. */
static int *next_sharing(struct arena *a, const struct target *t) {
  int *next = arena_new_array(a, (size_t)t->ndevices, int),
      *last = arena_new_array(a, (size_t)t->ndevices, int);
  for (int d = 0; d < t->ndevices; d++) {
    int memory = t->devices[d].memory;
    if (d != memory) next[last[memory]] = d;
    last[memory] = d;
    next[d] = -1;
  }
  return next;
}

/* A copy of x in the memory of the device, made for another one there, or x itself. */
static struct node *nearest(const struct graph *out, struct node *x, int device, const int *next) {
  const struct target *t = &out->config.target;
  if (t->devices[x->device].memory == t->devices[device].memory) return x;
  for (int d = t->devices[device].memory; d >= 0; d = next[d]) {
    if (d == device) continue;
    struct node *copy = graph_find(out, arena_printf(out->arena, "%s.copy_%d", x->name, d));
    if (copy && copy->op == OP_copy && copy->inputs[0] == x && copy->device == d) return copy;
  }
  return x;
}

static struct node *copy_to(struct graph *out, struct node *x, int device, const int *next) {
  const struct device *devices = out->config.target.devices;
  const char *name = arena_printf(out->arena, "%s.copy_%d", x->name, device);
  x = nearest(out, x, device, next);
  build_at(out, x);
  out->at.device = device;
  out->at.want = NULL;
  out->at.why = (struct reason){
      .rule = arena_printf(out->arena, "%s -> %s", devices[x->device].text, devices[device].text)};
  struct attr alias = attr_int(ATTR_alias, 1);
  bool shared = devices[x->device].memory == devices[device].memory;
  /* Equal copies are one node. */
  return build_named(out, name, OP_copy, 1, &x, shared, &alias, NULL);
}

static struct node *bring(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                          void *user) {
  (void)ctx;
  bool relay = n->op == OP_identity && n->dist == in[0]->dist; /* else it is a tower's share */
  if (relay && in[0]->device != n->device) return copy_to(out, in[0], n->device, user);
  for (int k = 0; k < n->ninputs; k++)
    if (n->op != OP_copy && !is_collective(n) && in[k]->device != n->device)
      in[k] = copy_to(out, in[k], n->device, user);
  return graph_node_like(out, n, in);
}

/* Whether something has to come from another device, or is read by nobody: as in the part of a task of one device. */
static bool has_work(struct pass_ctx *ctx, const struct graph *g) {
  if (memchr(graph_live(ctx->scratch, g), 0, g->count)) return true;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    for (int k = 0; k < n->ninputs && n->op != OP_copy && !is_collective(n); k++)
      if (n->inputs[k]->device != n->device) return true;
  }
  return false;
}

struct graph *pass_copies(struct pass_ctx *ctx, struct graph *g) {
  if (!has_work(ctx, g)) return g;
  return rebuild(ctx, g, NULL, bring, next_sharing(ctx->scratch, &g->config.target));
}

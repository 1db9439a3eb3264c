/* SPDX-License-Identifier: Apache-2.0 */
/* collectives: expands all_reduce into additions and copies, and all_gather into a concatenation.
 *
 * The tree over the towers is fixed by their number alone: a range of n towers is cut after the largest power of two
 * below n. So the bits of a sum do not depend on where the towers run. A subtree whose towers share a device is summed
 * there, one whose towers share a task that is not the sum's own within that task, one whose towers share a host (which
 * --cluster names) that is not the sum's own within that host, and only its sum travels. What differs is where the rest
 * is summed and how the result comes to its readers, to another host once, by way of one of its devices:
 *
 *   reduce_to_one      where the reduction was placed; every reader fetches it from there
 *   hierarchical_copy  see hierarchical.c: each half of the tree on a device of its own towers
 *   scatter            see scatter.c: each device sums a part of the elements, and all fetch the parts
 *   ring               see ring.c: the order of additions is another, and the bits depend on the number of devices
 *   nccl               see nccl.c: the devices add together, in an order that is NCCL's own
 *
 * Requires: stage placed. Guarantees: no all_reduce is left but those that devices do together, and no all_gather. */
#include "passes/collectives/collectives.h"

#include "ir/ops/op.h"
#include "ir/ops/op_id.h"

#include <string.h>

/* What a reader on this device reads. */
static struct node *result_on(struct graph *out, struct tower_sum *s, int device) {
  if (s->ring) return ring_result(s->ring, device);
  if (s->scatter) return scatter_result(out, s->scatter, device);
  if (s->parts && s->parts[device]) return s->parts[device];
  bool other = s->half && s->half[device] == 1 << s->other_half;
  struct node *x = other && s->total->device != s->other_root
                       ? relay(out, s->total, s->total->name, s->other_root)
                       : s->total;
  return fetch(out, &s->fetchers, x, device, 0);
}

/* The share of a worker's only tower is the whole, and its rows are all rows. */
static struct node *only_share(struct graph *out, const struct node *n, struct node **in) {
  struct node whole = *n;
  whole.op = OP_identity;
  whole.inputs = in;
  whole.nattrs = 0;
  whole.device = in[0]->device;
  whole.why =
      (struct reason){.rule = n->op == OP_all_gather ? "rows -> their only tower" : "sum -> its only tower"};
  return graph_node(out, &whole);
}

static struct node *reduce(struct collectives *e, struct graph *out, const struct node *n, struct node **in) {
  bool whole = task_graph_is_whole(&e->part);
  if (whole && n->ninputs == 1) return only_share(out, n, in);
  const char *how = node_string(n, ATTR_reduction);
  struct tower_sum *s = e->sums[n->id] = arena_new(e->ctx->scratch, struct tower_sum);
  struct tree t = {
      .out = out, .s = &e->strategy, .part = &e->part, .all = n, .terms = in, .count = n->ninputs};
  t.hosts = e->hosts;
  t.members = &e->members;
  t.op = share_op(dist_partial(how));
  if (!whole && n->ninputs != (e->part.ntowers ? e->part.ntowers : 1)) {
    diag_error(e->ctx->diags, n->loc, "%s has %d shares, and task %s has %d towers", n->name, n->ninputs,
               out->config.task, e->part.ntowers);
    return NULL;
  }
  if (!whole) {
    t.count = e->strategy.towers;
    t.terms = arena_new_array(e->ctx->scratch, (size_t)t.count, struct node *);
    for (int i = 0; i < e->part.ntowers; i++) t.terms[e->part.first_tower + i] = in[i];
  }
  s->fetchers = tree_fetchers(e->ctx->scratch, &t);
  bool adds = strcmp(how, "sum") == 0;
  if (e->algorithm == CROSS_DEVICE_ring && adds) s->ring = ring_make(e->ctx, &t);
  if (e->algorithm == CROSS_DEVICE_scatter && adds) s->scatter = scatter_make(e->ctx, &t);
  if ((s->ring || s->scatter) && !whole) return result_on(out, s, e->part.first[e->part.process]);
  if (s->ring || s->scatter) return result_on(out, s, n->device);
  bool halves = e->algorithm == CROSS_DEVICE_hierarchical_copy && t.count > 1;
  if (!whole && halves) return s->total = hierarchical_part(&t, e->count++);
  if (!whole) return s->total = tree_part(&t, n->device, tree_divide, NULL);
  if (e->algorithm == CROSS_DEVICE_nccl && adds && nccl_make(e, &t, s)) return result_on(out, s, n->device);
  s->total =
      halves ? hierarchical_whole(e->ctx, &t, e->count, s) : tree_sum(&t, 0, n->ninputs, n->device, NULL);
  e->count++;
  return s->total = tree_divide(out, n, s->total);
}

static struct node *expand(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                           void *user) {
  struct collectives *e = user;
  (void)ctx;
  for (int k = 0; k < n->ninputs; k++) {
    struct tower_sum *s = e->sums[n->inputs[k]->id];
    if (s && !(in[k] = result_on(out, s, n->device))) return NULL;
  }
  if (n->op == OP_all_reduce && !is_collective(n)) return reduce(e, out, n, in);
  if (n->op == OP_all_gather) {
    if (n->ninputs == 1) return only_share(out, n, in);
    build_at(out, n);
    struct attr axis = attr_int(ATTR_axis, 0);
    return build_named(out, n->name, OP_concat, n->ninputs, in, 1, &axis, NULL);
  }
  return graph_node_like(out, n, in);
}

/* The devices of the values that are to be summed. */
static void settle(struct pass_ctx *ctx, struct config *c, const struct graph *g) {
  uint8_t *seen = arena_new_array(ctx->scratch, (size_t)c->target.ndevices + 1, uint8_t);
  int *devices = arena_new_array(ctx->scratch, (size_t)c->target.ndevices + 1, int), count = 0;
  for (uint32_t i = 0; i < g->count; i++)
    for (int k = 0; g->nodes[i]->op == OP_all_reduce && k < g->nodes[i]->ninputs; k++) {
      int device = g->nodes[i]->inputs[k]->device;
      if (!seen[device]) devices[count++] = device;
      seen[device] = 1;
    }
  nccl_settle(c, devices, count, ctx->diags);
}

/* In the part of one task sums were outputs, as what it gives of them is; that stands for itself now. */
static struct graph *drop_shares(struct graph *g) {
  int kept = 0;
  for (int i = 0; i < g->noutputs; i++)
    if (g->outputs[i].role != OUTPUT_SEND || g->outputs[i].node->op == OP_send)
      g->outputs[kept++] = g->outputs[i];
  g->noutputs = kept;
  return g;
}

struct graph *pass_collectives(struct pass_ctx *ctx, struct graph *g) {
  struct graph *out = graph_create_like(ctx->arena, g);
  struct collectives e = {.ctx = ctx};
  settle(ctx, &out->config, g);
  if (out->config.task) {
    if (!strategy_resolve(ctx->scratch, g, &out->config, &e.strategy, ctx->diags)) return NULL;
    if (!task_graph_find(ctx->scratch, &out->config, &e.strategy, &e.part, ctx->diags)) return NULL;
  } else {
    e.part.process = -1;
  }
  const struct target *target = &out->config.target;
  e.hosts = cluster_hosts(ctx->scratch, out->config.cluster, target);
  if (e.hosts && out->config.task) e.members = tree_members(ctx->scratch, &e.part, e.hosts, target->ndevices);
  int algorithm = cross_device_find(&out->config, ctx->diags);
  if (algorithm < 0) return NULL;
  e.algorithm = (enum cross_device)algorithm;
  e.sums = arena_new_array(ctx->scratch, g->count + 1, struct tower_sum *);
  e.users = graph_users(ctx->scratch, g);
  e.live = graph_live(ctx->scratch, g);
  return rebuild(ctx, g, out, expand, &e) ? drop_shares(out) : NULL;
}

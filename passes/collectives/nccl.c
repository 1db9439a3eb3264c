/* SPDX-License-Identifier: Apache-2.0 */
/* Sums by NCCL. Each device adds the shares of its own towers by the tree; the rest the devices do together: the sum
 * becomes a node on each of them, of equal operands, which is one call of NCCL's all-reduce (is_collective in
 * ir/ops/op.h).
 *
 * NCCL adds in an order of its own, which may be another for another size, version or machine: so the dump says at
 * each sum that no bits are promised. A sum that one of the devices does not read, like that of the losses, is made
 * where it was placed. */
#include "ir/ops/op_id.h"
#include "passes/collectives/collectives.h"

#include "ir/ops/op.h"

/* Whether all these devices read the sum. */
static bool all_read(const struct collectives *e, const struct node *all, const int *devices, int ndevices) {
  for (int i = 0; i < ndevices; i++) {
    bool reads = false;
    for (uint32_t k = e->users.first[all->id]; k < e->users.first[all->id + 1]; k++)
      reads |= e->live[e->users.users[k]->id] && e->users.users[k]->device == devices[i];
    if (!reads) return false;
  }
  return true;
}

/* The devices of the terms, each once. */
static int devices_of(const struct tree *t, int *devices) {
  int count = 0;
  for (int i = 0; i < t->all->ninputs; i++)
    if (i == 0 || t->terms[i]->device != t->terms[i - 1]->device) devices[count++] = t->terms[i]->device;
  return count;
}

static bool is_summed(enum dtype d) { return d == DT_F32 || d == DT_F64 || d == DT_I32 || d == DT_I64; }

bool nccl_make(struct collectives *e, const struct tree *t, struct tower_sum *s) {
  struct graph *g = t->out;
  struct arena *scratch = e->ctx->scratch;
  int *devices = arena_new_array(scratch, (size_t)t->all->ninputs, int), count = devices_of(t, devices);
  if (tree_devices(t) < 2 || type_count(&t->all->type) == 0 || !is_summed((enum dtype)t->all->type.dtype) ||
      !all_read(e, t->all, devices, count) || nccl_why_not(&g->config.target, devices, count, scratch))
    return false;
  struct node **own = arena_new_array(scratch, (size_t)count, struct node *);
  tree_blocks(t, devices, own);
  struct attr attrs[2] = {attr_string(ATTR_reduction, "sum"), attr_string(ATTR_by, "nccl")};
  s->parts = arena_new_array(scratch, (size_t)g->config.target.ndevices, struct node *);
  for (int i = 0; i < count; i++) {
    build_at(g, t->all);
    g->at.device = devices[i];
    g->at.replica = i == 0 ? t->all->replica : g->at.device;
    g->at.why = (struct reason){.rule = arena_printf(g->arena,
                                                     "nccl -> rank %d of %d, device %d; no bits are promised",
                                                     i, count, g->at.device)};
    const char *name = t->all->name;
    if (i > 0) name = arena_printf(g->arena, "%s/replica_%d", name, i);
    s->parts[g->at.device] = build_named(g, name, OP_all_reduce, count, own, 2, attrs, NULL);
    if (!s->parts[g->at.device]) return false;
  }
  s->total = s->parts[devices[0]];
  return true;
}

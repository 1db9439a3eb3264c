/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of nodes that become one kernel: decided in fuse.c, built in build.c. */
#ifndef DGC_PASSES_FUSE_FUSE_H
#define DGC_PASSES_FUSE_FUSE_H

#include "base/grow.h"
#include "ir/ops/op_id.h"
#include "ir/scalar/kernel.h"
#include "passes/pass.h"

enum { MAX_GROUP_MEMBERS = 128, NOWHERE = -1 };

/* What elementwise ops cost: of an op on this type; 0: not known yet. */
struct fuse_cost {
  struct arena *scratch;
  uint8_t known[OP_COUNT][DT_COUNT];
};

/* A value that a group reads from outside, under one view: what will be one argument of the kernel. */
struct group_use {
  const struct node *node;
  uint32_t view;  /* hash of the movements between; 0 = none */
  bool inside;    /* read in the loops of the reduction, not after them */
  bool expanding; /* repeated by a broadcast */
};

struct group {
  const struct node *root;                    /* its last node; the group runs at its place in the order */
  const struct node *reduce[MAX_KERNEL_SUMS]; /* its reductions, see use_allows */
  int nreduce, nmembers, nresults, nuses;
  int latest, due;        /* of all members, see fusion */
  uint32_t seen;          /* the node + 1 whose readers were counted last */
  int members;            /* index into fusion.members, ascending by node */
  struct group_use *uses; /* most groups have few: room for uses_cap, MAX_FUSED_ARGS at most */
  int uses_cap;
};

struct group_member {
  const struct node *node;
  int group;
  int next_in_group, next_of_node; /* or NOWHERE */
  bool result;                     /* read from outside the group too */
};

struct fusion {
  const struct graph *g;
  struct arena *scratch;
  struct users users;
  uint8_t *live, *is_output;
  bool by_tower; /* see graph_tower_by_tower */
  struct group *groups;
  int ngroups, groups_cap;
  struct group_member *members;
  int nmembers, members_cap;
  int *found; /* groups that read a node */
  int found_cap;
  int *sums; /* groups that sum, the newest last */
  int nsums, sums_cap;
  int *member_of;  /* by node: its newest membership */
  uint32_t *place; /* by node that is in no group: where it runs in the order */
  /* In the part of one task, by node, in the order of messages: the last one that it is made of, -1: none; and the
   * first one that is made of it, INT_MAX: none. Else NULL. */
  int *latest, *due;
  struct fuse_cost cost;
};

/* A node that is no step of its own, or one that waits for its reader: it stands right before what reads it. */
static inline bool fuse_floats(const struct node *n) {
  int64_t offset;
  if (n->op == OP_copy) return true;
  return op_of(n)->kind != KIND_ELEMENTWISE && node_is_view(n, &offset);
}
/* Elementwise, and cheaper to compute again than to store and load. */
bool fuse_is_cheap(struct fuse_cost *c, const struct node *n);
/* Cheap values that another device of the same memory reads are computed there too (pull.c). */
struct graph *fuse_pull(struct pass_ctx *ctx, struct graph *g);
/* Operands that CPUs multiply as bfloat16 are stored so (narrow.c). */
struct graph *fuse_narrow(struct pass_ctx *ctx, struct graph *g);
/* What loops stack in 16 bits is stored so (stacks.c). */
struct graph *fuse_stacks(struct pass_ctx *ctx, struct graph *g);
/* Whether n is on a CPU or a GPU; whether it reads its operands in a kernel, element by element. */
bool fuse_is_here(const struct graph *g, const struct node *n);
bool fuse_is_kernel(const struct node *n);
/* The kind of a device, "" for none; whether n multiplies bfloat16 values there; x as it is stored for that. */
const char *fuse_kind(const struct graph *g, int device);
bool fuse_is_product(const struct graph *g, const struct node *n, int device);
struct node *fuse_narrowed(struct graph *out, struct node *x, int device, enum dtype d);
/* What a loop's products need of its constants is made before the loop (hoist.c). */
struct graph *fuse_hoist(struct pass_ctx *ctx, struct graph *g);
struct graph *fuse_build(struct pass_ctx *ctx, const struct fusion *f);

#endif

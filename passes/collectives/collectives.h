/* SPDX-License-Identifier: Apache-2.0 */
/* The cross-device algorithms of pass collectives. */
#ifndef DGC_PASSES_COLLECTIVES_COLLECTIVES_H
#define DGC_PASSES_COLLECTIVES_COLLECTIVES_H

#include "passes/collectives/tree.h"
#include "passes/rebuild.h"
#include "passes/strategy/strategy.h"
#include "passes/strategy/task_graph.h"

struct ring;
struct scatter;

/* What has become of an all_reduce. */
struct tower_sum {
  struct node *total;
  uint8_t *half;  /* by device: bit h = it carries towers of half h of the tree; NULL: one root only */
  int other_half; /* the one whose root does not hold the total */
  int other_root;
  struct ring *ring;
  struct scatter *scatter;
  struct fetchers fetchers;
  struct node **parts; /* NCCL: by device, the whole sum; NULL where there is none */
};

struct collectives {
  struct pass_ctx *ctx;
  struct strategy strategy;
  struct task_graph part;
  enum cross_device algorithm;
  const int *hosts; /* as in struct tree */
  struct members members;
  struct tower_sum **sums; /* by source id */
  int count;               /* of sums so far: roots take turns */
  struct users users;      /* of the source */
  const uint8_t *live;
};

/* The sum, undivided, by two roots: those of the n-th sum. `s` knows then which of them a device reads from. */
struct node *hierarchical_whole(struct pass_ctx *ctx, const struct tree *t, int n, struct tower_sum *s);
/* In the part of one task: the sum, divided, on one of its devices. */
struct node *hierarchical_part(const struct tree *t, int n);

/* NULL if a ring is not worth it: one device, or fewer elements than devices. */
struct ring *ring_make(struct pass_ctx *ctx, const struct tree *t);
/* The whole sum on a device; every device's is made once, by passing the chunks on. */
struct node *ring_result(struct ring *r, int device);

/* NULL if it is not worth it: one device, or fewer elements than devices. */
struct scatter *scatter_make(struct pass_ctx *ctx, const struct tree *t);
/* The whole sum on a device. */
struct node *scatter_result(struct graph *out, struct scatter *s, int device);

/* Makes the sum once on each device that has towers, by NCCL; false if that cannot be, or is not worth it: where one of
 * them does not read the sum. */
bool nccl_make(struct collectives *e, const struct tree *t, struct tower_sum *s);

#endif

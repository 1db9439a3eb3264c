/* Sums over towers, shared by the cross-device algorithms. */
#ifndef DGC_PASSES_COLLECTIVES_COLLECTIVES_H
#define DGC_PASSES_COLLECTIVES_COLLECTIVES_H

#include "passes/rebuild.h"
#include "passes/strategy/strategy.h"

/* An all_reduce in the making. */
struct tree {
  struct graph *out;
  const struct node *all; /* the all_reduce */
  struct node **leaves;   /* of `out`, one per tower or per block of towers, in tower order */
  enum op_id op;
};

struct ring;

/* What has become of an all_reduce. */
struct sum {
  struct node *total;
  uint8_t *half;  /* by device: bit h = it carries towers of half h of the tree; NULL: one root only */
  int other_half; /* the one whose root does not hold the total */
  int other_root;
  struct ring *ring;
  struct node **parts; /* NCCL: by device, the whole sum; NULL where there is none */
};

struct expansion {
  struct pass_ctx *ctx;
  enum cross_device algorithm;
  struct sum **sums;  /* by source id */
  int count;          /* of sums so far: roots take turns */
  struct users users; /* of the source */
  const uint8_t *live;
};

/* How many of a range of towers stand left of the cut. */
int tree_cut(int towers);
/* The sum of towers lo..hi-1 by the fixed tree, on `device` as far as the towers do not share one. `why` may be NULL:
 * the all_reduce's own rule. */
struct node *tree_sum(const struct tree *t, int lo, int hi, int device, const char *why);
/* One addition of it. */
struct node *tree_add(const struct tree *t, struct node **pair, int lo, int hi, int device, const char *why);

/* How many devices have towers. 1 also if those of one device do not follow each other. */
int tree_devices(const struct tree *t);
/* Those devices in tower order, and the sum that each has of its towers by the fixed tree. */
void tree_blocks(const struct tree *t, int *devices, struct node **sums);

/* NULL if a ring is not worth it: one device, or fewer elements than devices. */
struct ring *ring_make(struct pass_ctx *ctx, const struct tree *t);
/* The whole sum on a device; every device's is made once, by passing the chunks on. */
struct node *ring_result(struct graph *out, struct ring *r, int device);

/* Makes the sum once on each device that has towers, by NCCL; false if that cannot be, or is not worth it: where one of
 * them does not read the sum. */
bool nccl_make(struct expansion *e, const struct tree *t, struct sum *s);

/* x by way of a device: an identity there, which pass copies makes a copy. Equal relays are one node. */
struct node *relay(struct graph *out, struct node *x, int device);

#endif

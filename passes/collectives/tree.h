/* Sums over towers, which the cross-device algorithms are made of. All return NULL after an error. */
#ifndef DGC_PASSES_COLLECTIVES_TREE_H
#define DGC_PASSES_COLLECTIVES_TREE_H

#include "passes/strategy/strategy.h"

/* An all_reduce in the making. */
struct tree {
  struct graph *out;
  const struct strategy *s;
  const struct task_part *part;
  const struct node *all; /* the all_reduce */
  struct node *
      *terms; /* of `out`, one per tower or per block of towers, in tower order; NULL: another task's */
  int count;  /* of terms */
  enum op_id op;
};

/* How many of a range of towers stand left of the cut. */
int tree_cut(int towers);
/* The sum of towers lo..hi-1 by the fixed tree, on `device` as far as the towers do not share one. `why` may be NULL:
 * the all_reduce's own rule. */
struct node *tree_sum(const struct tree *t, int lo, int hi, int device, const char *why);
/* In the part of one task: all of the sum, made on `device`, and `finish`ed there, on the first device of the task. The
 * task that makes it sends it to all others. */
struct node *tree_part(const struct tree *t, int device,
                       struct node *(*finish)(struct graph *g, const struct node *all, struct node *total));
/* One addition of it. */
struct node *tree_add(const struct tree *t, struct node **pair, int lo, int hi, int device, const char *why);

/* How many devices have towers. 1 also if those of one device do not follow each other. */
int tree_devices(const struct tree *t);
/* Those devices in tower order, and the sum that each has of its towers by the fixed tree. */
void tree_blocks(const struct tree *t, int *devices, struct node **sums);

/* x by way of a device: an identity there, which pass copies makes a copy. Equal relays are one node. */
struct node *relay(struct graph *out, struct node *x, int device);

#endif

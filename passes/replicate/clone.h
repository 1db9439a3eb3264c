/* SPDX-License-Identifier: Apache-2.0 */
/* One clone of a node. All return NULL after an error. */
#ifndef DGC_PASSES_REPLICATE_CLONE_H
#define DGC_PASSES_REPLICATE_CLONE_H

#include "passes/replicate/state.h"

/* Of what a clone is made: a tower's rows or the whole batch. */
struct clone_rows {
  int tower; /* or -1 */
  int64_t rows, first;
  int64_t counted; /* what batch_size is */
};
/* n once more under this name. */
struct node *clone(struct replicate *r, const struct node *n, const char *name, struct node **in,
                   struct clone_rows s);
/* x with another distribution, which the builder would fold away; `suffix` of its name. */
struct node *relabel(struct replicate *r, const struct node *n, struct node *x, enum dist dist, int tower,
                     const char *suffix);
/* A value that turned out to be the same in all towers, as a tower's. */
struct node *lift(struct replicate *r, const struct node *n, struct node *x, int tower);

/* What the next node will be: n's location, this distribution, tower and device. */
void place_context(struct replicate *r, const struct node *n, enum dist dist, int tower, int device);
const char *tower_name(struct replicate *r, const char *name, int tower);
/* Of n's shares in the towers joined. */
const char *sum_name(struct replicate *r, const struct tower_group *g, const struct node *n);
const char *copy_name(struct replicate *r, const struct tower_group *g, const struct node *n,
                      const char *name, int device);

/* The copy of a mirrored value, or the sum of a partial one, that a node on the device reads. */
struct node *mirrored_value(struct replicate *r, const struct tower_group *g, const struct node *x,
                            int device);
/* In the part of one task: x, which a device of another task has and sends. */
struct node *received(struct replicate *r, const struct tower_group *g, const struct node *x, int device);
/* A variable that has one copy, as it is after this many of the step's updates. */
struct node *version_of(const struct replicate *r, const struct node *variable, int version);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The clones of a node for all towers of a group and all devices. False or NULL after an error. */
#ifndef DGC_PASSES_REPLICATE_TOWERS_H
#define DGC_PASSES_REPLICATE_TOWERS_H

#include "passes/replicate/state.h"

/* gather_rows.c: what the scatter_add n on the device reads of all towers as its input. */
struct node *gathered_rows(struct replicate *r, struct tower_group *g, const struct node *n, int input,
                           int device);

/* The part of one task: its towers' rows of what the scatter_add n on a device of another task reads. */
bool send_rows(struct replicate *r, struct tower_group *g, const struct node *n, int device);

/* local.c */
/* The local values of n. */
bool clone_local(struct replicate *r, struct tower_group *g, const struct node *n, struct node **in);
/* Each tower's part of an aggregate; the copies of a variable; the assignments to them. */
bool clone_shares(struct replicate *r, struct tower_group *g, const struct node *n);
bool clone_copies(struct replicate *r, const struct node *n);
bool clone_assigns(struct replicate *r, struct tower_group *g, const struct node *n);
/* The towers' shares joined, where n is needed. */
bool join_local(struct replicate *r, struct tower_group *g, const struct node *n, int device);
/* What each tower has for itself. */
bool clone_own(struct replicate *r, struct tower_group *g, const struct node *n);
/* An aggregate of what is the same in all towers. */
struct node *aggregate_same(struct replicate *r, const struct tower_group *g, const struct node *n,
                            struct node *x);

/* towers.c */
bool clone_mirrored(struct replicate *r, struct tower_group *g, const struct node *n, struct node **in);
bool clone_towers(struct replicate *r, struct tower_group *g, const struct node *n, struct node **in);
/* The towers' shares of n as one value, where it is needed. */
bool reduce_towers(struct replicate *r, struct tower_group *g, const struct node *n);

#endif

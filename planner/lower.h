/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a fused graph as launches of kernels: loops, strides, offsets. Knows nothing of buffers or order. */
#ifndef DGC_PLANNER_LOWER_H
#define DGC_PLANNER_LOWER_H

#include "ir/ops/op.h"
#include "ir/plan/plan.h"
#include "planner/launch.h"

struct lowerer;

/* Everything returned lives in `a`; `scratch` must outlive the lowerer. */
struct lowerer *lower_create(struct arena *a, struct arena *scratch, const struct graph *g);
void lower_destroy(struct lowerer *l);
/* A result is an input of a concat, and is written there. */
struct lower_into {
  const struct node *concat; /* NULL: it is not */
  int64_t begin;             /* elements along the axis before it */
};
/* The launches of a node that computes, in order: 0 or more of them. `into`: by result; of a concat by input, those
 * that others write. */
int lower_node(struct lowerer *l, const struct node *n, const struct lower_into *into,
               const struct launch **out);
/* The distinct kernels so far. */
int lower_kernels(const struct lowerer *l, const struct kernel ***out);

/* Whether result `result` may lie where input `input` lies: in every launch each element of the input is read by
 * the iteration that overwrites it, and by no other; a leaf says so of itself. */
bool lower_in_place(const struct node *n, const struct launch *launches, int nlaunches, int result,
                    int input);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel in the making: a nest of loops, the values in it, what they read and write. Of lower.c, loop_nest.c,
 * loop_order.c and intern.c. */
#ifndef DGC_PLANNER_LOOP_NEST_H
#define DGC_PLANNER_LOOP_NEST_H

#include "ir/ops/op.h"
#include "planner/launch.h"

struct lowerer {
  struct arena *arena, *scratch;
  struct arena_guard guard; /* of `record` */
  struct arena *record;     /* the programs of the kernel at hand, until it is known to be a new one */
  int64_t batch;
  const struct kernel **kernels;
  int nkernels, cap;
  const struct kernel **table; /* open addressing by hash */
  uint32_t table_size;
  struct item *items; /* kept between nests */
  int items_cap;
  int *memo, *input_of; /* of the body's nodes: their newest item; which input they are */
  uint32_t memo_cap;
};

/* How a value is seen from the loops: its element along axis i is number begin[i] + (index of loop[i]). */
struct operand_view {
  int8_t loop[MAX_RANK]; /* -1: none, always begin[i] */
  int64_t begin[MAX_RANK];
};

enum item_kind {
  ITEM_INPUT,
  ITEM_IMMEDIATE,
  ITEM_BATCH,
  ITEM_IOTA,
  ITEM_RANDOM,
  ITEM_SCALAR,
  ITEM_ACCUMULATOR
};

/* One value under one view. */
struct item {
  enum item_kind kind;
  const struct node *node; /* input: the value read */
  struct operand_view view;
  bool epilogue;
  int input;                /* input: which input of the node being lowered */
  int in[3];                /* items */
  int next;                 /* another item of the same node, or -1 */
  int64_t stride[MAX_RANK]; /* input, random: elements per step of each loop */
  int64_t offset;           /* in elements */
  int arg;                  /* input: kernel argument */
  sval value;
};

struct nest {
  struct lowerer *l;
  const struct node *node;
  const struct graph *body;                   /* NULL: the node itself is the body */
  const struct node *reduce[MAX_KERNEL_SUMS]; /* they have the same axes of operands of one shape */
  int nreduce, nloops;
  int64_t extent[MAX_RANK];
  bool reduced[MAX_RANK], indexed[MAX_RANK];
  struct operand_view outer,
      all; /* of the results: over the kept loops; of what is mapped: over all of them */
  int nitems;
  int reduced_item[MAX_KERNEL_SUMS]; /* by reduction: the operand */
  int nresults, nmapped;
  int result[MAX_KERNEL_RESULTS], number[MAX_KERNEL_RESULTS]; /* items; which results of the node they are */
  int64_t out_stride[MAX_KERNEL_RESULTS][MAX_RANK], out_offset[MAX_KERNEL_RESULTS];
  uint8_t out_dtype[MAX_KERNEL_RESULTS];
};

/* Loops over the elements of `over`, or over those of the operands of the `nreduce` reductions. */
void nest_begin(struct nest *t, struct lowerer *l, const struct node *n, const struct graph *body,
                const struct type *over, const struct node *const *reduce, int nreduce);
/* Whether this result is mapped beside reductions. */
bool nest_maps(const struct nest *t, const struct node *value);
/* Result `number` of the node is `value`, stored into a value of type `into` from element `begin` of it on (NULL:
 * from the first). Those that are mapped come last. */
void nest_result(struct nest *t, int number, const struct node *value, const struct type *into,
                 const int64_t *begin);
/* Its only result is an input, element by element, from element `begin` of it on, or one element of it repeated. */
void nest_copy(struct nest *t, int input, const struct type *into, const int64_t *begin);
void nest_fill(struct nest *t, int input, const struct type *into);
void nest_end(struct nest *t, struct launch *out);

/* The stored kernel that equals k, or a copy of k, now stored. */
const struct kernel *lower_intern(struct lowerer *l, struct kernel *k);

#endif

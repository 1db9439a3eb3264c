/* SPDX-License-Identifier: Apache-2.0 */
/* How values lie over the towers, each of which has some rows of the batch.
 *
 * Every op has a rule, the second column of ops.def: what a tower computes when each operand that has rows of the batch
 * holds that tower's rows only. The replicate pass and the certificate both read it; tests/ops/test_spread.c holds
 * every rule against numbers.
 *
 * The batch may be any axis, and part of one: f32[3,B] reshaped to f32[3*B] has three blocks in its axis, in each of
 * which the rows stand once. What a tower has of it are its rows of each block, f32[3*b]. Blocks are told by counting:
 * see row_blocks. */
#ifndef DGC_IR_OPS_SPREAD_H
#define DGC_IR_OPS_SPREAD_H

#include "ir/ops/op.h"

enum spread {
  SPREAD_SAME,      /* the same in all towers: it reads no rows */
  SPREAD_ROWS,      /* a tower's value is its rows of the whole */
  SPREAD_PER_TOWER, /* each tower has another value */
  SPREAD_SUM,       /* a tower's value is its share of a sum ... */
  SPREAD_MAX,
  SPREAD_MIN,
  SPREAD_ALL, /* the rows of all towers are read, in one order for all operands */
  SPREAD_NOT  /* none of these */
};

/* What n's rule says. For SPREAD_NOT *why is the reason; `why` may be NULL. */
enum spread node_spread(const struct node *n, const char **why);
/* Whether it is a sum of what it reads, or of products of two that it reads. */
bool node_adds_up(const struct node *n);
/* "sum", "max", "min" of a share, else NULL. */
const char *spread_joined_by(enum spread s);

/* Whether n itself, whatever it reads, may be another value where the rows are those of one tower alone. */
bool node_varies(const struct node *n);
/* Whether n is made from where each element stands in the whole, which its attributes tell. */
bool node_is_counted(const struct node *n);
/* The attributes of such a node for its elements from `row` of axis 0 on; how many. */
int counted_from(const struct node *n, int64_t row, struct attr *out);

/* By node id. */
struct row_blocks {
  int64_t *of;      /* of how many blocks its batch axis is made; 0 where there is none, or no element */
  const char **why; /* why the rows of its operands cannot be met in one order; NULL: they can */
};
/* Of the live nodes of g; everything is in `a`. */
struct row_blocks row_blocks(struct arena *a, const struct graph *g);

/* Some rows of the batch. */
struct rows {
  int64_t first, count, batch; /* batch: all there are */
};
/* n for these rows, in g: `in` are its operands for them. n's type depends on the batch. NULL after an error. */
struct node *build_rows(struct graph *g, const char *name, const struct node *n, struct node *const *in,
                        int64_t blocks, struct rows r);
/* x, which is n for `rows` rows, with these as its first axis; and back again. What has them there already stays as it
 * is. */
struct node *rows_first(struct graph *g, const char *name, const struct node *n, int64_t blocks,
                        struct node *x, int64_t rows);
struct node *rows_back(struct graph *g, const char *name, const struct node *n, int64_t blocks,
                       struct node *x, int64_t rows);

/* The tensor in whose order the elements of a random tensor are counted, which it is or is a part of. */
struct type random_whole(const struct node *n);

#endif

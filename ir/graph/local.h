/* SPDX-License-Identifier: Apache-2.0 */
/* What a tower has for itself: values read for its own rows. */
#ifndef DGC_IR_GRAPH_LOCAL_H
#define DGC_IR_GRAPH_LOCAL_H

#include "ir/graph/build.h"

/* A statistic of rows, by itself, whatever rows it is computed by: a tower has that of its own rows of `of`. */
struct statistic {
  struct node *node;
  const struct node *of;
};

/* Where a reading ends: these nodes stay what they are. */
struct local_ends {
  const struct node *const *nodes;
  int count;
  bool through_rows; /* else it ends at rows, too, which are the model's */
  const struct statistic *statistics;
  int nstatistics;
  bool joined; /* it is read for a tower by what joins it: only statistics become `local` here */
};

/* x as each tower has it: what it is made of is built again, up to the ends, each reduction of the batch as a `local`
 * and what counts the batch, too. x itself where nothing of it is of the batch, or becomes another. NULL after an
 * error, or with *mixed, a value that would be read for the tower's rows, and is in rows of its own as that of the
 * whole batch. `a` may die after the call; mixed may be NULL. */
struct node *build_local(struct arena *a, struct graph *g, struct node *x, const struct local_ends *ends,
                         const struct node **mixed);

#endif

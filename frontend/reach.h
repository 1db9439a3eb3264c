/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes are made of certain others. Each node of a graph is looked at once, however often one asks. */
#ifndef DGC_FRONTEND_REACH_H
#define DGC_FRONTEND_REACH_H

#include "ir/graph/graph.h"

/* For each node of one graph, whether it is made of certain others: known for the first `count`. */
struct reach {
  const struct graph *g;
  uint8_t *is;
  uint32_t count, cap;
};

struct reaches {
  struct arena *arena;
  struct reach batch;   /* what depends on the rows of the batch */
  struct reach varying; /* what is not made of constants alone */
  struct reach total;   /* what depends on all rows of the batch at once */
};

bool reach_batch(struct reaches *r, const struct graph *g, const struct node *n);
bool reach_varying(struct reaches *r, const struct graph *g, const struct node *n);
bool reach_total(struct reaches *r, const struct graph *g, const struct node *n);

#endif

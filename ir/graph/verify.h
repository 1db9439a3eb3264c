/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the verifier. */
#ifndef DGC_IR_GRAPH_VERIFY_H
#define DGC_IR_GRAPH_VERIFY_H

#include "ir/graph/graph.h"

struct verify {
  struct arena *arena; /* dies with the call */
  const struct graph *g;
  const char *after; /* the pass before */
  struct diags *diags;
  bool inside; /* the graph is a body: it reads what the graph around it has */
  bool ok;
};

/* verify_breach.c: reports a breach at n, with its line; NULL when there is no node to show. */
void verify_breach(struct verify *v, const struct node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* From replication on: distributions and which value may be read where. */
void verify_towers(struct verify *v);
/* From placement on: devices. */
void verify_placement(struct verify *v);
/* Whether n is a variable that goes where its `on` says: under replicate and round_robin, as in replicate_model_fn.
 * State of an optimizer goes with its variable, and a tower's own copy with its tower. */
bool variable_moves(const char *strategy, const struct node *n);

#endif

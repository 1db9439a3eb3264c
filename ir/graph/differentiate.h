/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode differentiation: the gradients of a scalar, as ordinary nodes. */
#ifndef DGC_IR_GRAPH_DIFFERENTIATE_H
#define DGC_IR_GRAPH_DIFFERENTIATE_H

#include "ir/graph/build.h"

/* Room for walks, which they share: each costs what its scalar is made of, not what the graph holds. All zero but for
 * the arena before the first walk. */
struct differentiation {
  struct arena *arena;
  const char *suffix; /* the gradient of x is called x.SUFFIX: "grad" where it is training's */
  bool backward;      /* that is what its nodes are then, too */
  uint32_t *ids;      /* the nodes that the scalar is made of, ascending */
  uint32_t *reached;  /* by node: the number of the last walk that came to it */
  uint32_t *named;    /* by node: the number of the last walk that named it */
  uint32_t count, number, cap, named_cap;
  struct node **grads;       /* by node */
  struct node *dy;           /* the gradient that the rule at hand is given */
  uint8_t *needed;           /* by node: it depends on one that is asked for */
  struct node ***of_results; /* by scan: the gradients of its results, or NULL */
};

/* The gradients of the scalar y by each of x[0..n), floats in g, into out[0..n): NULL where y does not depend on it, or
 * by nothing that has a slope. Each op adds to its operands' gradients by its own rule; only what depends on one of x
 * gets one. New nodes stand where those stand whose gradients they are. */
void differentiate(struct differentiation *d, struct graph *g, struct node *y, int n, struct node *const *x,
                   struct node **out);

#endif

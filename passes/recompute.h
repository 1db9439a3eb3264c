/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the forward pass that are computed again where the backward pass reads them, instead of being kept. */
#ifndef DGC_PASSES_RECOMPUTE_H
#define DGC_PASSES_RECOMPUTE_H

#include "passes/pass.h"

/* Which values of a placed graph, whose copies are made, are computed again. */
struct recompute {
  const struct graph *g;
  uint8_t *stored; /* by node: a plan keeps it, where nothing is computed again */
  uint8_t *again;  /* by node: it is to be computed again; the caller sets it, where recompute_may says so */
};

/* For g, in `a`, with nothing to be computed again; false after an error. */
bool recompute_init(struct pass_ctx *ctx, struct arena *a, struct graph *g, struct recompute *out);
/* Whether n is stored, is of the forward pass, and something of the backward pass reads it. */
bool recompute_may(const struct recompute *r, const struct node *n);
/* What is computed once more for n, itself and what is not stored, and what is read for that: node numbers, into
 * arrays with room for all nodes. What is stored and may be computed again is read if `reads` says so, else it is among
 * what is computed, and has to be computed again as well. False if something there cannot be computed twice: what comes
 * from another device, and loops. */
struct recomputed {
  uint32_t *computed, *read;
  int ncomputed, nread;
};
typedef bool recompute_reads(void *user, const struct node *x);
bool recompute_cost(const struct recompute *r, struct arena *scratch, const struct node *n,
                    recompute_reads *reads, void *user, struct recomputed *out);
/* The graph in which it is so. Each is a node of its own, with the attribute `again`, which stands where the backward
 * pass reads it first; what it is made of is computed again, too, unless it is stored. */
struct graph *recompute_graph(struct pass_ctx *ctx, const struct recompute *r);

#endif

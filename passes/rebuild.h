/* SPDX-License-Identifier: Apache-2.0 */
/* The walk that most passes are: every live node again, in order, through the builder. */
#ifndef DGC_PASSES_REBUILD_H
#define DGC_PASSES_REBUILD_H

#include "passes/pass.h"

/* What n becomes in `out`, given what its inputs have become; NULL after an error. What it builds stands where n
 * stands: build_at has been called. A node of another op that takes n's place takes its name by build_takes_name; one
 * that build_like makes has it. */
typedef struct node *rebuild_visit(struct pass_ctx *ctx, struct graph *out, const struct node *n,
                                   struct node **in, void *user);

/* Builds each live node of g again with build_like, or as `visit` says, in `out` (NULL: a new graph like g),
 * and the outputs with it. */
struct graph *rebuild(struct pass_ctx *ctx, struct graph *g, struct graph *out, rebuild_visit *visit,
                      void *user);

#endif

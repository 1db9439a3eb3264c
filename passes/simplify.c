/* SPDX-License-Identifier: Apache-2.0 */
/* simplify: rebuilds every live node through the builder, which folds constants, applies the algebraic rules that stand
 * with each op, and merges equal nodes. What nothing needs is not rebuilt.
 *
 * Requires: nothing. Guarantees: no dead node; running it again changes nothing. */
#include "passes/scans.h"

struct graph *pass_simplify(struct pass_ctx *ctx, struct graph *g) {
  /* A rule may leave nodes that only it needed: go on until nothing dies. */
  for (;;) {
    struct scans *scans = scans_find(ctx, g);
    struct graph *out = rebuild(ctx, g, NULL, scans ? scans_visit : NULL, scans);
    if (!out || (out->count == g->count && !scans_changed(scans))) return out;
    g = out;
  }
}

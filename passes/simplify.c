/* simplify: rebuilds every live node through the builder, which folds constants, applies the algebraic rules that stand
 * with each op, and merges equal nodes. What nothing needs is not rebuilt.
 *
 * Requires: nothing. Guarantees: no dead node; running it again changes nothing. */
#include "passes/rebuild.h"

struct graph *pass_simplify(struct pass_ctx *ctx, struct graph *g) {
  /* A rule may leave nodes that only it needed: go on until nothing dies. */
  for (;;) {
    struct graph *out = rebuild(ctx, g, NULL, NULL, NULL);
    if (!out || out->count == g->count) return out;
    g = out;
  }
}

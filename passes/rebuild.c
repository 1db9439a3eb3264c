/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilding a graph: dead nodes stay behind, equal ones merge, folding rules apply again. */
#include "passes/rebuild.h"

struct visited {
  struct pass_ctx *ctx;
  rebuild_visit *visit;
  void *user;
};

static struct node *visit_node(struct graph *out, const struct node *n, struct node **in, void *user) {
  const struct visited *v = user;
  build_at(out, n);
  return v->visit(v->ctx, out, n, in, v->user);
}

struct graph *rebuild(struct pass_ctx *ctx, struct graph *g, struct graph *out, rebuild_visit *visit,
                      void *user) {
  struct visited v = {ctx, visit, user};
  struct node **made = arena_new_array(ctx->scratch, g->count + 1, struct node *);
  const uint8_t *live = graph_live(ctx->scratch, g);
  if (!out) out = graph_create_like(ctx->arena, g);
  graph_reserve(out, g->count);
  if (!graph_copy_nodes(ctx->scratch, out, g, live, made, visit ? visit_node : build_again, &v)) return NULL;
  graph_copy_outputs(out, g, made);
  return out;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilding a graph: dead nodes stay behind, equal ones merge, folding rules apply again. */
#include "passes/rebuild.h"

struct graph *rebuild(struct pass_ctx *ctx, struct graph *g, struct graph *out, rebuild_visit *visit,
                      void *user) {
  if (!out) out = graph_create_like(ctx->arena, g);
  uint8_t *live = graph_live(ctx->scratch, g);
  graph_reserve(out, g->count);
  struct node **map = arena_new_array(ctx->scratch, g->count + 1, struct node *);
  for (uint32_t i = 0; i < g->count; i++) {
    struct node *n = g->nodes[i];
    if (!live[i]) continue;
    struct node **in = arena_new_array(ctx->scratch, (size_t)n->ninputs + 1, struct node *);
    for (int k = 0; k < n->ninputs; k++) in[k] = map[n->inputs[k]->id];
    map[i] = visit ? visit(ctx, out, n, in, user) : build_like(out, n, in, NULL);
    if (!map[i]) return NULL;
  }
  for (int i = 0; i < g->noutputs; i++)
    graph_add_output(out, g->outputs[i].role, g->outputs[i].name, map[g->outputs[i].node->id],
                     g->outputs[i].count);
  return out;
}

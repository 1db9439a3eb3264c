/* SPDX-License-Identifier: Apache-2.0 */
/* The placed graph as a list of nodes, for those who draw or count it. */
#include "session/compile.h"
#include "session/model.h"
#include "session/settle.h"

#include "ir/graph/text.h"
#include "ir/ops/op.h"

static struct dgc_node *describe(struct arena *a, const struct graph *g, const struct node *n) {
  struct dgc_node *out = arena_new(a, struct dgc_node);
  const char **inputs = arena_new_array(a, (size_t)n->ninputs, const char *);
  for (int i = 0; i < n->ninputs; i++) inputs[i] = arena_strdup(a, n->inputs[i]->name);
  const char *origin = node_origin(a, n);
  *out = (struct dgc_node){.result = {.name = arena_strdup(a, n->name),
                                      .dtype = dtype_name((enum dtype)n->type.dtype),
                                      .rank = n->type.rank},
                           .op = op_of(n)->name,
                           .device = arena_strdup(a, g->config.target.devices[n->device].text),
                           .distribution = dist_name(n->dist),
                           .rule = n->why.rule ? arena_strdup(a, reason_text(a, n->why)) : NULL,
                           .where = origin && *origin ? arena_strdup(a, origin) : NULL,
                           .inputs = inputs,
                           .ninputs = n->ninputs};
  for (int i = 0; i < n->type.rank; i++) out->result.shape[i] = n->type.dim[i];
  return out;
}

static enum dgc_status list_nodes(struct dgc_session *s, const char *entry,
                                  const struct dgc_node *const **nodes, int *count) {
  enum entry_kind kind;
  *nodes = NULL, *count = 0;
  enum dgc_status status = entry_find(s, entry, &kind);
  if (!status) status = session_settle(s);
  if (status) return status;
  const struct graph *g = session_graph(s, s->call, kind, 0, "copies");
  if (!g) return session_blame(s);
  struct arena *a = session_text(s).arena;
  const uint8_t *live = graph_live(s->call, g);
  const struct dgc_node **list = arena_new_array(a, g->count, const struct dgc_node *);
  for (uint32_t i = 0; i < g->count; i++)
    if (live[i]) list[(*count)++] = describe(a, g, g->nodes[i]);
  *nodes = list;
  return DGC_OK;
}

enum dgc_status dgc_graph(struct dgc_session *s, const char *entry, const struct dgc_node *const **nodes,
                          int *count) {
  CALL(s, list_nodes(s, entry, nodes, count));
}

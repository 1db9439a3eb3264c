/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: a pass loses no line. Where each node of the graph that it reads says where it comes from, each one
 * that it gives does. Graphs written by hand, as in tests of passes, need not. */
#include "ir/graph/build.h"
#include "ir/graph/verify.h"

static bool has_origin(const struct node *n) {
  return n->origin ? *n->origin != '\0' : n->loc.source != NULL;
}

/* The first node that says nothing, bodies included; *in is the graph that has it. NULL: there is none. */
static const struct node *without_origin(const struct graph *g, const struct graph **in) {
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    const struct attr *body = node_attr(n, ATTR_body);
    *in = g;
    if (!has_origin(n)) return n;
    if (body && (n = without_origin(body->body, in))) return n;
  }
  return NULL;
}

bool graph_verify_origins(const struct graph *before, const struct graph *g, const char *after,
                          struct diags *d) {
  const struct graph *in;
  const struct node *lost = before == g ? NULL : without_origin(g, &in);
  if (!lost || without_origin(before, &(const struct graph *){NULL})) return true;
  struct arena_guard guard;
  struct verify v = {.arena = arena_create_guarded(&guard), .g = in, .after = after, .diags = d, .ok = true};
  verify_breach(&v, lost, "%s says nothing of the line it comes from, as all nodes did before: build_at",
                lost->name);
  arena_destroy_guarded(v.arena, &guard);
  return v.ok;
}

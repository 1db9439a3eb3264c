/* SPDX-License-Identifier: Apache-2.0 */
/* recompute: activations that are not kept for the backward pass, but computed again by it. It has no row in
 * passes.def: session/memory_limit.c calls it, for --memory-limit, and says which.
 *
 * Requires: placed, with copies and collectives expanded. Guarantees: the same values. A node that is computed again is
 * the same op on the same operands, so it has the same bits, random numbers among them, which are counted, not drawn.
 * What it is made of and no plan stores, as a kernel computes it on its way, is computed again with it; what is stored
 * is read, for which it may have to live longer. The nodes of the first time and of the second are told apart by an
 * attribute, or the builder would merge them. (Chen, Xu, Zhang and Guestrin, Training deep nets with sublinear memory
 * cost, 2016.) */
#include "passes/recompute.h"

#include "ir/graph/text.h"
#include "ir/ops/op.h"

#include <string.h>

/* Whether nothing is stored for it: what reads it reads through it. */
static bool is_moved(const struct node *n) { return node_is_strided(n) || op_of(n)->view; }

/* Whether it computes something, and the same each time: random numbers of a step are sources that read its number. */
static bool computes(const struct node *n) {
  enum op_kind kind = op_of(n)->kind;
  bool drawn = kind == KIND_SOURCE && n->ninputs > 0, joined = kind == KIND_MOVEMENT && !is_moved(n);
  return kind == KIND_ELEMENTWISE || kind == KIND_REDUCE || kind == KIND_LEAF || drawn || joined;
}

bool recompute_init(struct pass_ctx *ctx, struct arena *a, struct graph *g, struct recompute *out) {
  struct arena_guard guard;
  struct pass_ctx inner = *ctx;
  *out = (struct recompute){.g = g};
  out->stored = arena_new_array(a, (size_t)g->count + 1, uint8_t);
  out->again = arena_new_array(a, (size_t)g->count + 1, uint8_t);
  inner.arena = arena_create_guarded(&guard);
  const struct graph *fused = pass_fuse(&inner, g);
  for (uint32_t i = 0; fused && i < fused->count; i++) {
    const struct node *n = graph_find(g, fused->nodes[i]->name);
    if (n && !is_moved(n)) out->stored[n->id] = 1;
  }
  arena_destroy_guarded(inner.arena, &guard);
  return fused != NULL;
}

bool recompute_may(const struct recompute *r, const struct node *n) {
  return r->stored[n->id] && !r->again[n->id] && !n->backward && computes(n);
}

/* Whether it is there anyway, so that it is read and not computed again. */
static bool is_there(const struct recompute *r, const struct node *n) {
  bool given = op_of(n)->kind == KIND_SOURCE && n->ninputs == 0;
  return (r->stored[n->id] && !r->again[n->id]) || given || n->backward;
}

static bool can_be_repeated(const struct node *n) { return computes(n) || is_moved(n); }

bool recompute_cost(const struct recompute *r, struct arena *scratch, const struct node *n,
                    recompute_reads *reads, void *user, struct recomputed *out) {
  uint8_t *seen = arena_new_array(scratch, (size_t)r->g->count + 1, uint8_t);
  out->ncomputed = out->nread = 0;
  out->computed[out->ncomputed++] = n->id;
  seen[n->id] = 1;
  for (int i = 0; i < out->ncomputed; i++) {
    const struct node *x = r->g->nodes[out->computed[i]];
    if (!can_be_repeated(x)) return false;
    for (int k = 0; k < x->ninputs; k++) {
      const struct node *y = x->inputs[k];
      if (seen[y->id]) continue;
      seen[y->id] = 1;
      if (is_there(r, y) && (!recompute_may(r, y) || reads(user, y)))
        out->read[out->nread++] = y->id;
      else
        out->computed[out->ncomputed++] = y->id;
    }
  }
  return true;
}

/* --- the graph --- */

struct rebuilding {
  const struct recompute *r;
  struct arena *scratch;
  struct graph *out;
  struct node **map;   /* by node of the old graph: the node in the new one */
  struct node **again; /* the one that is computed again, or NULL so far */
  struct node **late;  /* what the backward pass reads for it, or NULL so far */
};

static struct node *repeated(struct rebuilding *b, const struct node *n, struct node *const *inputs,
                             bool marked) {
  struct node same = *n;
  struct attr *attrs = arena_new_array(b->scratch, (size_t)n->nattrs + 1, struct attr);
  if (n->nattrs) memcpy(attrs, n->attrs, sizeof *attrs * (size_t)n->nattrs);
  attrs[n->nattrs] = attr_int(ATTR_again, 1);
  same.inputs = (struct node **)(uintptr_t)inputs;
  same.attrs = attrs;
  same.nattrs = n->nattrs + marked;
  same.name = arena_printf(b->scratch, "%s.again", n->name);
  if (marked) {
    const char *rule = reason_text(b->scratch, n->why);
    same.why = (struct reason){
        .rule = arena_printf(b->scratch, "%s, once more: it is not kept", rule ? rule : "compute")};
  }
  return graph_node(b->out, &same);
}

typedef struct node *in_its_place(struct rebuilding *b, const struct node *n);

/* What stands in the place of each operand; *changed: one of them is not that of the first time. */
static struct node **operands(struct rebuilding *b, const struct node *n, in_its_place *of, bool *changed) {
  struct node **in = arena_new_array(b->scratch, (size_t)n->ninputs + 1, struct node *);
  *changed = false;
  for (int k = 0; k < n->ninputs; k++) {
    in[k] = of(b, n->inputs[k]);
    *changed |= in[k] != b->map[n->inputs[k]->id];
  }
  return in;
}

/* n as it is computed for the second time; what is there anyway as it is. Operands stand before what reads them, so
 * that no value is wanted before it is known here. */
static struct node *compute_again(struct rebuilding *b, const struct node *n) {
  if (is_there(b->r, n)) return b->map[n->id];
  if (b->again[n->id]) return b->again[n->id];
  bool changed;
  struct node **in = operands(b, n, compute_again, &changed);
  bool same = is_moved(n) && !changed;
  return b->again[n->id] = same ? b->map[n->id] : repeated(b, n, in, true);
}

/* What the backward pass reads in the place of n: n itself where nothing that it is made of is computed again. */
static struct node *read_late(struct rebuilding *b, const struct node *n) {
  if (is_there(b->r, n) || n->backward) return b->map[n->id];
  if (b->r->again[n->id]) return compute_again(b, n);
  if (b->late[n->id]) return b->late[n->id];
  bool changed;
  operands(b, n, read_late, &changed);
  return b->late[n->id] = changed && can_be_repeated(n) ? compute_again(b, n) : b->map[n->id];
}

static struct node *rebuilt(struct rebuilding *b, const struct node *n) {
  struct node **in = arena_new_array(b->scratch, (size_t)n->ninputs + 1, struct node *);
  for (int k = 0; k < n->ninputs; k++)
    in[k] = n->backward ? read_late(b, n->inputs[k]) : b->map[n->inputs[k]->id];
  return graph_node_like(b->out, n, in);
}

struct graph *recompute_graph(struct pass_ctx *ctx, const struct recompute *r) {
  const struct graph *g = r->g;
  size_t count = (size_t)g->count + 1;
  struct rebuilding b = {.r = r, .scratch = ctx->scratch, .out = graph_create_like(ctx->arena, g)};
  b.map = arena_new_array(ctx->scratch, count, struct node *);
  b.again = arena_new_array(ctx->scratch, count, struct node *);
  b.late = arena_new_array(ctx->scratch, count, struct node *);
  uint8_t *live = graph_live(ctx->scratch, g);
  for (uint32_t i = 0; i < g->count; i++)
    if (live[i]) b.map[i] = rebuilt(&b, g->nodes[i]);
  graph_copy_outputs(b.out, g, b.map);
  return b.out;
}

/* collectives: expands all_reduce into a tree of additions and all_gather into a concatenation: reduce_to_one.
 *
 * The tree over the towers is fixed by their number alone: a range of n towers is cut after the largest power
 * of two below n. So the bits of a sum do not depend on where the towers run. A subtree whose towers share a
 * device is summed there, and only its sum travels; everything else is summed where the reduction was placed.
 *
 * Requires: stage placed. Guarantees: no all_reduce and no all_gather is left. */
#include "passes/rebuild.h"

#include <string.h>

struct tree {
  struct graph *out;
  const struct node *all; /* the all_reduce */
  struct node **leaves;
  enum op_id op;
};

static struct node *sum(const struct tree *t, int lo, int hi) {
  if (hi - lo == 1) return t->leaves[lo];
  int half = 1;
  while (2 * half < hi - lo) half *= 2;
  struct node *pair[2] = {sum(t, lo, lo + half), sum(t, lo + half, hi)};
  if (!pair[0] || !pair[1]) return NULL;
  bool root = lo == 0 && hi == t->all->ninputs;
  struct graph *g = t->out;
  build_at(g, t->all);
  const char *name = t->all->name;
  if (!root) {
    name = arena_printf(g->arena, "%s.towers_%d-%d", name, lo, hi - 1);
    g->dist = DIST_PARTIAL;
    g->tower = lo;
    g->replica = -1;
    if (pair[0]->device == pair[1]->device) {
      g->device = pair[0]->device;
      g->why = "partial sum -> where its towers are";
    }
  }
  return build_named(g, name, t->op, 2, pair, 0, NULL, NULL);
}

static struct node *expand(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                           void *user) {
  (void)ctx, (void)user;
  if (n->op == OP_all_gather) {
    build_at(out, n);
    struct attr axis = attr_int(ATTR_axis, 0);
    return build_named(out, n->name, OP_concat, n->ninputs, in, 1, &axis, NULL);
  }
  if (n->op != OP_all_reduce) {
    struct node same = *n;
    same.inputs = in;
    return graph_node(out, &same);
  }
  const char *how = node_string(n, ATTR_reduction);
  bool mean = strcmp(how, "mean") == 0;
  struct tree t = {.out = out, .all = n, .leaves = in};
  t.op = strcmp(how, "max") == 0 ? OP_max : strcmp(how, "min") == 0 ? OP_min : OP_add;
  struct node *total = sum(&t, 0, n->ninputs);
  if (!mean || !total) return total;
  build_at(out, n);
  return build2(out, OP_div, total, build_fill(out, &n->type, n->ninputs));
}

struct graph *pass_collectives(struct pass_ctx *ctx, struct graph *g) {
  return rebuild(ctx, g, NULL, expand, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* rows: keeps gradients of lookups as rows.
 *
 * There is no sparse kind of value: the gradient of a gather is a scatter_add on zeros, and what is linear in
 * it can be done to its rows. A sum of values, or what it is scaled by, goes to the rows, and where the rows
 * meet another value they are added to that one: x + scatter_add(0, i, v) becomes scatter_add(x, i, v). So an
 * update touches the rows that the batch names and no others.
 *
 * That pays only if nothing needs such a gradient as a whole: what is made dense for one use is dense for all.
 * So the uses decide, from the last to the first.
 *
 * This is the one pass that changes how floats round: for rows v and w of one number, x + (v + w) becomes
 * (x + v) + w, and s * (v + w) becomes s * v + s * w.
 *
 * Requires: stage source. Guarantees: the same values, but for that. */
#include "ir/ops/op_id.h"
#include "passes/rebuild.h"

struct sparse_rows {
  uint8_t *sparse; /* by id: zeros but for some rows, and no use needs it as a whole */
};

/* The scalar that n repeats, or NULL. */
static struct node *repeated(const struct node *n) {
  return n->op == OP_broadcast && n->inputs[0]->type.rank == 0 ? n->inputs[0] : NULL;
}

/* The operand of which n is a multiple, or -1. */
static int scaled_operand(const struct node *n) {
  if (n->op == OP_neg) return 0;
  if (n->op == OP_div) return dtype_is_float(n->type.dtype) && repeated(n->inputs[1]) ? 0 : -1;
  if (n->op != OP_mul) return -1;
  return repeated(n->inputs[1]) ? 0 : repeated(n->inputs[0]) ? 1 : -1;
}

static bool is_sum(const struct node *n) { return n->op == OP_add || n->op == OP_sub; }

/* Whether n is zeros but for some rows, given that its operands in `some` are. */
static bool has_rows(const struct node *n, const uint8_t *some) {
  if (n->op == OP_scatter_add) return node_is_constant(n->inputs[0], 0) || some[n->inputs[0]->id];
  if (is_sum(n)) return some[n->inputs[0]->id] && some[n->inputs[1]->id];
  int scaled = scaled_operand(n);
  return scaled >= 0 && some[n->inputs[scaled]->id];
}

/* Whether user u of n can do with n's rows, given what u itself may be. */
static bool use_allows(const struct node *n, const struct node *u, const uint8_t *some) {
  if (is_sum(u)) return true; /* they are added to the other operand */
  if (u->op == OP_scatter_add) return u->inputs[0] == n && u->inputs[2] != n;
  int scaled = scaled_operand(u);
  return scaled >= 0 && u->inputs[scaled] == n && some[u->id];
}

static uint8_t *find_sparse(struct pass_ctx *ctx, const struct graph *g) {
  uint8_t *sparse = arena_new_array(ctx->scratch, g->count + 1, uint8_t);
  const uint8_t *live = graph_live(ctx->scratch, g);
  bool any = false;
  for (uint32_t i = 0; i < g->count; i++)
    if (live[i]) any |= sparse[i] = has_rows(g->nodes[i], sparse);
  if (!any) return NULL;
  struct users users = graph_users(ctx->scratch, g);
  for (int i = 0; i < g->noutputs; i++) sparse[g->outputs[i].node->id] = 0;
  for (uint32_t i = g->count; i-- > 0;)
    for (uint32_t k = users.first[i]; sparse[i] && k < users.first[i + 1]; k++) {
      const struct node *u = users.users[k];
      if (live[u->id] && !use_allows(g->nodes[i], u, sparse)) sparse[i] = 0;
    }
  for (uint32_t i = 0; i < g->count; i++) /* what is made of something dense is dense */
    sparse[i] = sparse[i] && has_rows(g->nodes[i], sparse);
  return sparse;
}

/* What is done to rows on their way: op(v), or op(v, by). */
struct change {
  enum op_id op; /* OP_identity: nothing */
  struct node *by;
};

static struct node *changed(struct graph *g, const struct change *c, struct node *v) {
  if (c->op == OP_identity) return v;
  return c->by ? build2(g, c->op, v, build_broadcast(g, c->by, &v->type, NULL)) : build1(g, c->op, v);
}

/* The rows of n, which is scatter_adds on zeros, changed and added to x instead. */
static struct node *rows_onto(struct pass_ctx *ctx, struct graph *g, struct node *n, struct node *x,
                              struct change c) {
  int count = 0;
  for (const struct node *s = n; s->op == OP_scatter_add; s = s->inputs[0]) count++;
  struct node **chain = arena_new_array(ctx->scratch, (size_t)count, struct node *);
  for (int i = count; i-- > 0; n = n->inputs[0]) chain[i] = n;
  for (int i = 0; i < count && x; i++)
    x = build3(g, OP_scatter_add, x, chain[i]->inputs[1], changed(g, &c, chain[i]->inputs[2]));
  return x;
}

/* Which operand's rows are added to the other, or -1. Of two with rows the one that has become fewer
 * scatter_adds: so a sum of many is no walk over all of them for each. */
static int added_operand(const struct node *n, struct node *const *in, const uint8_t *sparse) {
  bool left = sparse[n->inputs[0]->id], right = sparse[n->inputs[1]->id];
  if (!left || !right || n->op == OP_sub) return right ? 1 : left ? 0 : -1;
  const struct node *a = in[0], *b = in[1];
  for (; a->op == OP_scatter_add && b->op == OP_scatter_add; a = a->inputs[0]) b = b->inputs[0];
  return a->op == OP_scatter_add;
}

static struct node *visit(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                          void *user) {
  const struct sparse_rows *r = user;
  static const struct change none = {OP_identity, NULL};
  int scaled = scaled_operand(n), added = is_sum(n) ? added_operand(n, in, r->sparse) : -1;
  uint32_t before = out->count;
  struct node *made = NULL;
  if (added >= 0) {
    struct node *onto = in[1 - added];
    if (n->op == OP_sub && added == 0) onto = build1(out, OP_neg, onto);
    made = rows_onto(ctx, out, in[added], onto,
                     n->op == OP_sub && added == 1 ? (struct change){OP_neg, NULL} : none);
  } else if (scaled >= 0 && r->sparse[n->id]) {
    struct node *by = n->op == OP_neg ? NULL : repeated(in[1 - scaled]);
    made = rows_onto(ctx, out, in[scaled], build_fill(out, &n->type, 0), (struct change){n->op, by});
  } else {
    return build_like(out, n, in, NULL);
  }
  build_takes_name(out, made, n, before);
  return made;
}

struct graph *pass_rows(struct pass_ctx *ctx, struct graph *g) {
  struct sparse_rows r = {find_sparse(ctx, g)};
  if (!r.sparse) return g;
  struct graph *out = rebuild(ctx, g, NULL, visit, &r);
  return out ? pass_simplify(ctx, out) : NULL; /* without what the rows were before */
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What products of a step would make of the loop's constants, each time anew, is made once, before the loop: weights
 * that are multiplied as bfloat16 are stored so, and others that a CPU's products read transposed are transposed. Of
 * weights for columns that nothing reads, as a slice has the others, nothing is left: so a first layer's gradient of
 * what it carries has no part for its inputs. No bit changes: of what is f32 an element's sum has one order, whichever
 * way operands lie. */
#include "ir/ops/op_id.h"
#include "ir/ops/scan.h"
#include "passes/fuse/fuse.h"
#include "passes/rebuild.h"

#include <string.h>

/* How the body reads one of its inputs. */
struct hoisting {
  bool products; /* by products alone, as what stands on the right */
  bool narrow, turned;
  const struct node *product, *slice; /* the one product, and the columns of it that are read; NULL: all */
  const struct node *operand;         /* what it is given */
};

/* The slice of columns that alone reads the product, or NULL. */
static const struct node *columns_read(const struct graph *body, const uint8_t *live,
                                       const struct node *product) {
  const struct node *slice = NULL;
  for (int i = 0; i < body->noutputs; i++)
    if (body->outputs[i].node == product) return NULL;
  for (uint32_t i = 0; i < body->count; i++)
    for (int k = 0; live[i] && k < body->nodes[i]->ninputs; k++) {
      if (body->nodes[i]->inputs[k] != product) continue;
      if (body->nodes[i]->op != OP_slice || slice) return NULL;
      slice = body->nodes[i];
    }
  for (int i = 0; slice && i < product->type.rank - 1; i++)
    if (slice->type.dim[i] != product->type.dim[i]) return NULL;
  return slice;
}

static struct hoisting hoisting_of(const struct graph *body, const uint8_t *live, const struct node *x,
                                   const struct graph *g, int device) {
  struct hoisting r = {true, true, strcmp(fuse_kind(g, device), "cpu") == 0, NULL, NULL, NULL};
  int readers = 0;
  for (int i = 0; i < body->noutputs; i++) r.products &= body->outputs[i].node != x;
  for (uint32_t i = 0; i < body->count; i++)
    for (int k = 0; live[i] && k < body->nodes[i]->ninputs; k++) {
      const struct node *n = body->nodes[i];
      if (n->inputs[k] != x) continue;
      readers++;
      r.product = n;
      r.products &= n->op == OP_matmul && k == 1;
      r.narrow &= fuse_is_product(g, n, device);
      r.turned &= node_int_or(n, ATTR_transpose_b, 0) != 0;
    }
  r.products &= readers > 0;
  r.turned &= !r.narrow;
  if (r.products && readers == 1) r.slice = columns_read(body, live, r.product);
  return r;
}

static bool is_hoisted(const struct hoisting *r) {
  return r->products && (r->narrow || r->turned || r->slice);
}

/* Of x what the product needs for the columns that are read. */
static struct node *sliced(struct graph *g, struct node *x, const struct hoisting *r) {
  struct type t = x->type;
  int64_t begin[MAX_RANK] = {0};
  int count, axis = t.rank - (node_int_or(r->product, ATTR_transpose_b, 0) ? 2 : 1);
  begin[axis] = node_ints(r->slice, ATTR_begin, &count)[t.rank - 1];
  t.dim[axis] = r->slice->type.dim[t.rank - 1];
  return build_slice(g, x, begin, &t);
}

/* x with its last two axes swapped. */
static struct node *turned(struct graph *g, struct node *x) {
  int64_t perm[MAX_RANK];
  int rank = x->type.rank;
  for (int i = 0; i < rank; i++) perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
  return build_transpose(g, x, perm);
}

static struct node *hoisted(struct graph *out, const struct hoisting *r, struct node *x,
                            const struct node *scan) {
  build_at(out, scan);
  if (r->slice) x = sliced(out, x, r);
  if (x && r->narrow) return fuse_narrowed(out, x, scan->device, DT_BF16);
  return x && r->turned ? turned(out, x) : x;
}

/* An input that is given what its operand is now, as what its readers take. */
static struct node *input(struct graph *out, const struct node *n, const struct hoisting *r) {
  struct node same = *n;
  same.type = r->operand->type;
  struct node *x = graph_node(out, &same);
  build_at(out, n);
  return x && r->narrow ? build_cast(out, x, DT_F32) : x;
}

/* A product that reads an input as it is now. */
static struct node *product(struct graph *out, const struct node *n, struct node **in,
                            const struct hoisting *r) {
  struct node same = *n;
  struct attr attrs[ATTR_COUNT];
  same.inputs = in;
  same.attrs = attrs;
  same.nattrs = 0;
  if (r->slice) same.type = r->slice->type;
  for (int i = 0; i < n->nattrs; i++)
    if (!r->turned || n->attrs[i].key != ATTR_transpose_b) attrs[same.nattrs++] = n->attrs[i];
  return graph_node(out, &same);
}

/* Whether n is what its product is cut down to. */
static bool is_cut_off(const struct node *n, const struct hoisting *const *hoisted) {
  const struct node *x = n->op == OP_slice ? n->inputs[0] : NULL;
  return x && x->op == OP_matmul && hoisted[x->inputs[1]->id] && hoisted[x->inputs[1]->id]->slice == n;
}

/* A node of the body, of whose nodes `user` says what is hoisted. */
static struct node *in_body(struct graph *out, const struct node *n, struct node **in, void *user) {
  const struct hoisting *const *hoisted = user;
  if (hoisted[n->id]) return input(out, n, hoisted[n->id]);
  if (n->op == OP_matmul && hoisted[n->inputs[1]->id]) return product(out, n, in, hoisted[n->inputs[1]->id]);
  return is_cut_off(n, hoisted) ? in[0] : graph_node_like(out, n, in);
}

static struct node *visit(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                          void *user) {
  (void)user;
  if (n->op != OP_scan) return graph_node_like(out, n, in);
  struct scan s = scan_of(n);
  uint8_t *live = graph_live(ctx->scratch, s.body);
  struct node **inputs = scan_inputs(ctx->scratch, s.body);
  struct hoisting *all = arena_new_array(ctx->scratch, (size_t)n->ninputs + 1, struct hoisting);
  const struct hoisting **of = arena_new_array(ctx->scratch, s.body->count + 1, const struct hoisting *);
  bool any = false;
  for (int i = s.carries + s.sequences; i < n->ninputs; i++) {
    all[i] = hoisting_of(s.body, live, inputs[i], out, n->device);
    if (!is_hoisted(&all[i])) continue;
    any = true;
    of[inputs[i]->id] = &all[i];
    if (!(all[i].operand = in[i] = hoisted(out, &all[i], in[i], n))) return NULL;
  }
  if (!any) return graph_node_like(out, n, in);
  /* The body, without nodes that nothing reads: their types would not follow from what products are now. */
  struct graph *body = graph_create_like(ctx->arena, s.body);
  struct node **made = arena_new_array(ctx->scratch, s.body->count + 1, struct node *);
  for (int i = 0; i < n->ninputs; i++) live[inputs[i]->id] = 1;
  if (!graph_copy_nodes(ctx->scratch, body, s.body, live, made, in_body, of)) return NULL;
  graph_copy_outputs(body, s.body, made);
  return scan_like(out, n, in, body);
}

struct graph *fuse_hoist(struct pass_ctx *ctx, struct graph *g) {
  return graph_has_op(g, OP_scan) ? rebuild(ctx, g, NULL, visit, NULL) : g;
}

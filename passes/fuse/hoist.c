/* SPDX-License-Identifier: Apache-2.0 */
/* What products of a step would make of the loop's constants, each time anew, is made once, before the loop: weights
 * that are multiplied as bfloat16 are stored so, and others that a CPU's products read transposed are transposed. No
 * bit changes: of what is f32 an element's sum has one order, whichever way operands lie. */
#include "ir/ops/op_id.h"
#include "ir/ops/scan.h"
#include "passes/fuse/fuse.h"
#include "passes/rebuild.h"

#include <string.h>

/* How the body reads one of its inputs. */
struct hoisting {
  bool products; /* by products alone, as what stands on the right */
  bool narrow, turned;
};

static struct hoisting hoisting_of(const struct graph *body, const uint8_t *live, const struct node *x,
                                   const struct graph *g, int device) {
  struct hoisting r = {true, true, strcmp(fuse_kind(g, device), "cpu") == 0};
  bool any = false;
  for (int i = 0; i < body->noutputs; i++) r.products &= body->outputs[i].node != x;
  for (uint32_t i = 0; i < body->count; i++)
    for (int k = 0; live[i] && k < body->nodes[i]->ninputs; k++) {
      const struct node *n = body->nodes[i];
      if (n->inputs[k] != x) continue;
      any = true;
      r.products &= n->op == OP_matmul && k == 1;
      r.narrow &= fuse_is_product(g, n, device);
      r.turned &= node_int_or(n, ATTR_transpose_b, 0) != 0;
    }
  r.products &= any;
  r.turned &= !r.narrow;
  return r;
}

static bool is_hoisted(const struct hoisting *r) { return r->products && (r->narrow || r->turned); }

/* x with its last two axes swapped. */
static struct node *turned(struct graph *g, struct node *x) {
  int64_t perm[MAX_RANK];
  int rank = x->type.rank;
  for (int i = 0; i < rank; i++) perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
  return build_transpose(g, x, perm);
}

static struct node *hoisted(struct graph *out, const struct hoisting *r, struct node *x,
                            const struct node *scan) {
  if (r->narrow) return fuse_narrowed(out, x, scan->device, DT_BF16);
  build_at(out, scan);
  return turned(out, x);
}

/* A product that reads an input as it is now. */
static struct node *product(struct graph *out, const struct node *n, struct node **in) {
  struct node same = *n;
  struct attr attrs[ATTR_COUNT];
  same.inputs = in;
  same.attrs = attrs;
  same.nattrs = 0;
  for (int i = 0; i < n->nattrs; i++)
    if (n->attrs[i].key != ATTR_transpose_b) attrs[same.nattrs++] = n->attrs[i];
  return graph_node(out, &same);
}

/* The body that is given what `operands` are now. */
static struct graph *body_of(struct pass_ctx *ctx, const struct graph *body, const struct hoisting *all,
                             struct node *const *operands) {
  struct graph *out = graph_create(ctx->arena, body->name, ctx->diags);
  struct node **made = arena_new_array(ctx->scratch, body->count + 1, struct node *);
  uint8_t *is_turned = arena_new_array(ctx->scratch, body->count + 1, uint8_t);
  int input = 0;
  out->stage = body->stage;
  for (uint32_t i = 0; i < body->count; i++) {
    const struct node *n = body->nodes[i];
    struct node same = *n;
    struct node **in = arena_new_array(ctx->scratch, (size_t)n->ninputs + 1, struct node *);
    for (int k = 0; k < n->ninputs; k++) in[k] = made[n->inputs[k]->id];
    same.inputs = in;
    if (n->op == OP_input && is_hoisted(&all[input])) {
      same.type = operands[input]->type;
      is_turned[i] = all[input].turned;
      made[i] = graph_node(out, &same);
      if (all[input].narrow && made[i]) made[i] = build_cast(out, made[i], DT_F32);
    } else {
      made[i] =
          n->op == OP_matmul && is_turned[n->inputs[1]->id] ? product(out, n, in) : graph_node(out, &same);
    }
    input += n->op == OP_input;
    if (!made[i]) return NULL;
  }
  for (int i = 0; i < body->noutputs; i++)
    graph_add_output(out, OUTPUT_VALUE, body->outputs[i].name, made[body->outputs[i].node->id], 0);
  return out;
}

static struct node *visit(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                          void *user) {
  struct node same = *n;
  struct attr attrs[ATTR_COUNT];
  (void)user;
  same.inputs = in;
  if (n->op != OP_scan) return graph_node(out, &same);
  struct scan s = scan_of(n);
  const uint8_t *live = graph_live(ctx->scratch, s.body);
  struct node **inputs = scan_inputs(ctx->scratch, s.body);
  struct hoisting *all = arena_new_array(ctx->scratch, (size_t)n->ninputs + 1, struct hoisting);
  bool any = false;
  for (int i = s.carries + s.sequences; i < n->ninputs; i++) {
    all[i] = hoisting_of(s.body, live, inputs[i], out, n->device);
    if (!is_hoisted(&all[i])) continue;
    any = true;
    if (!(in[i] = hoisted(out, &all[i], in[i], n))) return NULL;
  }
  if (!any) return graph_node(out, &same);
  memcpy(attrs, n->attrs, sizeof *attrs * (size_t)n->nattrs);
  for (int i = 0; i < n->nattrs; i++)
    if (attrs[i].key == ATTR_body && !(attrs[i].body = body_of(ctx, s.body, all, in))) return NULL;
  same.attrs = attrs;
  return graph_node(out, &same);
}

struct graph *fuse_hoist(struct pass_ctx *ctx, struct graph *g) {
  return graph_has_op(g, OP_scan) ? rebuild(ctx, g, NULL, visit, NULL) : g;
}

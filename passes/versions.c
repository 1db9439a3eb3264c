/* SPDX-License-Identifier: Apache-2.0 */
/* versions: tells apart, for asynchronous training, who reads a variable: the model, or an update.
 *
 * Workers apply their gradients one after the other. What a gradient is computed from may be older than what it is
 * applied to: so where an update reads a variable, it reads the newest version, and `newest v` stands for that until
 * replicate knows which it is. The model is all that losses, gradients and results need, and all that has a batch
 * axis; updates share its values if those depend on the batch, and else compute their own.
 *
 * Requires: stage source, gradients not expanded. Guarantees: the same, and `newest` before each variable that
 * updates read; without asynchronous training, without gradients, or where versions are told apart already, the same
 * graph. */
#include "ir/ops/op_id.h"
#include "passes/pass.h"

struct versions {
  const struct graph *g;
  struct graph *out;
  uint8_t *live;
  uint8_t *model;       /* belongs to the model, else to updates alone */
  uint8_t *batch;       /* depends on the batch: what a worker has of it is its own */
  uint8_t *wanted;      /* of the model's values: an update reads it, and no batch is in it */
  struct node **read;   /* by id: as the model reads it */
  struct node **newest; /* as updates read it; NULL: the same */
};

static void mark_model(struct versions *v) {
  const struct graph *g = v->g;
  for (int i = 0; i < g->noutputs; i++)
    if (g->outputs[i].role != OUTPUT_UPDATE) v->model[g->outputs[i].node->id] = 1;
  for (uint32_t i = g->count; i-- > 0;) {
    const struct node *n = g->nodes[i];
    if (n->op == OP_gradient || type_batch_axis(&n->type) >= 0) v->model[i] = 1;
    for (int k = 0; v->model[i] && k < n->ninputs; k++) v->model[n->inputs[k]->id] = 1;
  }
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    v->batch[i] = n->op == OP_gradient || n->op == OP_aggregate || n->op == OP_local || n->op == OP_input ||
                  n->op == OP_batch_size || type_batch_axis(&n->type) >= 0;
    for (int k = 0; k < n->ninputs; k++) v->batch[i] |= v->batch[n->inputs[k]->id];
  }
}

static void mark_wanted(struct versions *v) {
  for (uint32_t i = v->g->count; i-- > 0;) {
    const struct node *n = v->g->nodes[i];
    bool update = v->live[i] && !v->model[i];
    for (int k = n->op == OP_assign; (update || v->wanted[i]) && k < n->ninputs; k++) {
      const struct node *x = n->inputs[k];
      bool shared = v->model[x->id] || (x->op == OP_variable && !is_on_read(x));
      if (shared && !v->batch[x->id]) v->wanted[x->id] = 1;
    }
  }
}

static struct node *for_update(const struct versions *v, const struct node *x) {
  return v->newest[x->id] ? v->newest[x->id] : v->read[x->id];
}

/* The model's node once more, as updates compute it. */
static struct node *again(struct pass_ctx *ctx, struct versions *v, const struct node *n) {
  build_at(v->out, n);
  const char *name = arena_printf(ctx->scratch, "%s/newest", n->name);
  if (is_on_read(n)) return v->read[n->id];
  if (n->op == OP_variable) return build_named(v->out, name, OP_newest, 1, &v->read[n->id], 0, NULL, NULL);
  struct node **in = arena_new_array(ctx->scratch, (size_t)n->ninputs + 1, struct node *);
  for (int k = 0; k < n->ninputs; k++) in[k] = for_update(v, n->inputs[k]);
  return build_named(v->out, name, n->op, n->ninputs, in, n->nattrs, n->attrs, &n->type);
}

static bool build_node(struct pass_ctx *ctx, struct versions *v, const struct node *n) {
  struct node **in = arena_new_array(ctx->scratch, (size_t)n->ninputs + 1, struct node *);
  for (int k = 0; k < n->ninputs; k++) {
    bool target = n->op == OP_assign && k == 0;
    in[k] = v->model[n->id] || target ? v->read[n->inputs[k]->id] : for_update(v, n->inputs[k]);
  }
  v->read[n->id] = build_like(v->out, n, in, NULL);
  if (v->read[n->id] && v->wanted[n->id] && !(v->newest[n->id] = again(ctx, v, n))) return false;
  return v->read[n->id] != NULL;
}

struct graph *pass_versions(struct pass_ctx *ctx, struct graph *g) {
  if (!g->config.asynchronous || !graph_has_op(g, OP_gradient) || graph_has_op(g, OP_newest)) return g;
  struct arena *a = ctx->scratch;
  size_t count = (size_t)g->count + 1;
  struct versions v = {.g = g, .out = graph_create_like(ctx->arena, g), .live = graph_live(a, g)};
  v.model = arena_new_array(a, count, uint8_t);
  v.batch = arena_new_array(a, count, uint8_t);
  v.wanted = arena_new_array(a, count, uint8_t);
  v.read = arena_new_array(a, count, struct node *);
  v.newest = arena_new_array(a, count, struct node *);
  mark_model(&v);
  mark_wanted(&v);
  for (uint32_t i = 0; i < g->count; i++)
    if (v.live[i] && !build_node(ctx, &v, g->nodes[i])) return NULL;
  graph_copy_outputs(v.out, g, v.read);
  return v.out;
}

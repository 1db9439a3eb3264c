/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of the groups that fuse.c has decided on. */
#include "ir/ops/op_id.h"
#include "ir/ops/scan.h"
#include "passes/fuse/fuse.h"

#include <string.h>

struct builder {
  const struct fusion *f;
  struct graph *g;      /* the result */
  struct node **made;   /* by old node: what holds its value */
  struct node **inner;  /* by old node: its copy in the body being built */
  int *inner_of;        /* ... and in which group's, + 1 */
  int *member_of;       /* by old node: the last group seen to have it, + 1 */
  struct node **inputs; /* scratch for one node */
  int inputs_cap;
  const struct node **chain; /* scratch for values that wait for each other */
  int chain_cap;
};

static struct node **inputs_room(struct builder *b, int count) {
  if (count > b->inputs_cap) {
    b->inputs_cap = 2 * count;
    b->inputs = arena_new_array(b->f->scratch, (size_t)b->inputs_cap, struct node *);
  }
  return b->inputs;
}

/* All inputs in their order, those too that nothing reads; then what else there is. */
static struct graph *with_inputs(const struct builder *b, const struct graph *fused,
                                 const struct graph *body) {
  struct graph *out = graph_create_like(b->g->arena, fused);
  struct node **made = arena_new_array(b->f->scratch, fused->count + 1, struct node *);
  for (uint32_t i = 0; i < body->count; i++)
    if (body->nodes[i]->op == OP_input) graph_node(out, body->nodes[i]);
  for (uint32_t i = 0; i < fused->count; i++)
    if (fused->nodes[i]->op == OP_input) made[i] = graph_find(out, fused->nodes[i]->name);
  graph_copy_nodes(b->f->scratch, out, fused, NULL, made, NULL, NULL);
  graph_copy_outputs(out, fused, made);
  return out;
}

static struct node *on_device(struct graph *out, const struct node *n, struct node **in, void *device) {
  struct node placed = *n;
  placed.inputs = in;
  placed.device = *(const int *)device;
  return graph_node(out, &placed);
}

/* The body of a scan, which runs where the scan does, fused as any graph is. */
static struct graph *fused_body(struct builder *b, const struct node *scan, const struct graph *body) {
  struct graph *placed = graph_create_like(b->f->scratch, b->g);
  struct node **made = arena_new_array(b->f->scratch, body->count + 1, struct node *);
  int device = scan->device;
  placed->stage = STAGE_PLACED;
  placed->config.task = NULL;
  graph_copy_nodes(b->f->scratch, placed, body, NULL, made, on_device, &device);
  graph_copy_outputs(placed, body, made);
  struct pass_ctx ctx = {.arena = b->g->arena, .scratch = b->f->scratch, .diags = b->g->diags};
  struct graph *fused = pass_fuse(&ctx, placed);
  if (!fused) return placed;
  fused->stage = STAGE_FUSED;
  return with_inputs(b, fused, placed);
}

/* n with its inputs, all of which are made. */
static struct node *make_like(struct builder *b, const struct node *n) {
  struct node **in = inputs_room(b, n->ninputs);
  for (int i = 0; i < n->ninputs; i++) in[i] = b->made[n->inputs[i]->id];
  return b->made[n->id] = n->op == OP_scan ? scan_like(b->g, n, in, fused_body(b, n, scan_of(n).body))
                                           : graph_node_like(b->g, n, in);
}

/* The value of n. Sources and nodes that float are made when first read; an update has the value it writes. */
static struct node *value_of(struct builder *b, const struct node *n) {
  int count = 0;
  for (const struct node *x = n; !b->made[x->id]; x = x->inputs[x->ninputs - 1]) {
    GROW(b->f, b->chain, count, b->chain_cap);
    b->chain[count++] = x;
    if (x->ninputs == 0) break;
  }
  while (count > 0) {
    const struct node *x = b->chain[--count];
    if (x->op == OP_assign && !b->made[x->inputs[0]->id]) make_like(b, x->inputs[0]); /* the variable */
    make_like(b, x);
  }
  return b->made[n->id];
}

static void make_updates(struct builder *b, const struct node *n) {
  for (uint32_t i = b->f->users.first[n->id]; i < b->f->users.first[n->id + 1]; i++) {
    const struct node *u = b->f->users.users[i];
    if (u->op != OP_assign || u->inputs[1] != n || !b->f->live[u->id] || b->made[u->id]) continue;
    value_of(b, u->inputs[0]);
    make_like(b, u);
  }
}

static void make_plain(struct builder *b, const struct node *n) {
  for (int i = 0; i < n->ninputs; i++) value_of(b, n->inputs[i]);
  make_like(b, n);
  make_updates(b, n);
}

/* The node of the body that n is equal to there: of two towers, n and it may differ in their places alone. */
static struct node *find_equal(const struct graph *body, const struct node *n, struct node *const *inputs) {
  for (uint32_t i = 0; i < body->count; i++) {
    struct node *q = body->nodes[i];
    bool equal = q->op == n->op && q->op != OP_input && q->ninputs == n->ninputs && q->nattrs == n->nattrs &&
                 type_equal(&q->type, &n->type);
    for (int k = 0; equal && k < n->ninputs; k++) equal = q->inputs[k] == inputs[k];
    for (int k = 0; equal && k < n->nattrs; k++) equal = attr_equal(&q->attrs[k], &n->attrs[k]);
    if (equal) return q;
  }
  return NULL;
}

/* Appends a copy of n to the body, without a place: it runs where the group runs. Nobody looks for names there, so
 * that a body needs no tables. */
static struct node *append(struct builder *b, struct graph *body, const struct node *n,
                           struct node **inputs) {
  if (body->count == body->cap) {
    body->cap = body->cap ? 2 * body->cap : 32;
    struct node **more = arena_new_array(body->arena, body->cap, struct node *);
    if (body->count) memcpy(more, body->nodes, body->count * sizeof *more);
    body->nodes = more;
  }
  struct node *copy = arena_new(body->arena, struct node);
  *copy = (struct node){.op = n->op,
                        .id = body->count,
                        .type = n->type,
                        .ninputs = n->ninputs,
                        .inputs = inputs,
                        .nattrs = n->nattrs,
                        .attrs = node_attrs_copy(body->arena, n),
                        .name = arena_strdup(body->arena, n->name),
                        .loc = n->loc,
                        .trail = n->trail,
                        .origin = graph_keep_text(b->g, n->origin),
                        .tower = -1,
                        .replica = -1,
                        .device = -1};
  b->inner[n->id] = copy;
  return body->nodes[body->count++] = copy;
}

static bool is_inner(const struct builder *b, const struct node *n, int group) {
  return b->inner_of[n->id] == group + 1;
}

/* Inputs of the body, in the order of first use; the outer values go to `inputs`. */
static int make_body_inputs(struct builder *b, int group, struct graph *body, struct node **inputs) {
  const struct fusion *f = b->f;
  int count = 0;
  for (int m = f->groups[group].members; m != NOWHERE; m = f->members[m].next_in_group)
    b->member_of[f->members[m].node->id] = group + 1;
  for (int m = f->groups[group].members; m != NOWHERE; m = f->members[m].next_in_group) {
    const struct node *n = f->members[m].node;
    for (int i = 0; i < n->ninputs; i++) {
      const struct node *x = n->inputs[i];
      if (node_is_immediate(x) || is_inner(b, x, group) || b->member_of[x->id] == group + 1) continue;
      inputs[count++] = value_of(b, x);
      struct node input = {.op = OP_input,
                           .id = x->id,
                           .type = x->type,
                           .name = x->name,
                           .loc = x->loc,
                           .trail = x->trail,
                           .origin = x->origin};
      append(b, body, &input, NULL);
      b->inner_of[x->id] = group + 1;
    }
  }
  return count;
}

static void make_inner(struct builder *b, int group, struct graph *body, const struct node *n, bool result) {
  struct node **inputs = arena_new_array(body->arena, (size_t)n->ninputs, struct node *);
  for (int i = 0; i < n->ninputs; i++) {
    const struct node *x = n->inputs[i];
    if (!is_inner(b, x, group)) make_inner(b, group, body, x, false); /* an immediate */
    inputs[i] = b->inner[x->id];
  }
  struct node *equal = result ? NULL : find_equal(body, n, inputs); /* each result is stored */
  if (equal)
    b->inner[n->id] = equal;
  else
    append(b, body, n, inputs);
  b->inner_of[n->id] = group + 1;
}

static void make_result(struct builder *b, struct node *fused, const struct node *n, int index) {
  struct attr attr = attr_int(ATTR_index, index);
  struct node proto = *n;
  proto.op = OP_output;
  proto.ninputs = 1;
  proto.inputs = &fused;
  proto.nattrs = 1;
  proto.attrs = &attr;
  b->made[n->id] = graph_node(b->g, &proto);
}

/* The fused node is its own first result and keeps the root's name. */
static void make_fused(struct builder *b, int group) {
  const struct fusion *f = b->f;
  const struct node *root = f->groups[group].root;
  struct graph *body = graph_create(b->g->arena, root->name, b->g->diags);
  struct node *inputs[MAX_FUSED_ARGS];
  int ninputs = make_body_inputs(b, group, body, inputs);
  for (int m = f->groups[group].members; m != NOWHERE; m = f->members[m].next_in_group)
    make_inner(b, group, body, f->members[m].node, f->members[m].result);

  const struct node *results[MAX_KERNEL_RESULTS] = {root};
  int nresults = 1;
  for (int m = f->groups[group].members; m != NOWHERE; m = f->members[m].next_in_group)
    if (f->members[m].result && f->members[m].node != root) results[nresults++] = f->members[m].node;
  for (int i = 0; i < nresults; i++)
    graph_add_output(body, OUTPUT_VALUE, results[i]->name, b->inner[results[i]->id], 0);

  struct attr attr = {.key = ATTR_body, .count = 1, .body = body};
  struct node proto = *root;
  proto.op = OP_fused;
  proto.ninputs = ninputs;
  proto.inputs = inputs;
  proto.nattrs = 1;
  proto.attrs = &attr;
  struct node *fused = b->made[root->id] = graph_node(b->g, &proto);
  for (int i = 1; i < nresults; i++) make_result(b, fused, results[i], i);
  for (int i = 0; i < nresults; i++) make_updates(b, results[i]);
}

/* The group of which n is the root, or NOWHERE. */
static int rooted(const struct fusion *f, const struct node *n) {
  for (int m = f->member_of[n->id]; m != NOWHERE; m = f->members[m].next_of_node)
    if (f->groups[f->members[m].group].root == n) return f->members[m].group;
  return NOWHERE;
}

struct graph *fuse_build(struct pass_ctx *ctx, const struct fusion *f) {
  const struct graph *g = f->g;
  struct builder b = {.f = f, .g = graph_create_like(ctx->arena, g)};
  b.g->stage = STAGE_FUSED;
  graph_reserve(b.g, g->count);
  b.made = arena_new_array(ctx->scratch, g->count + 1, struct node *);
  b.inner = arena_new_array(ctx->scratch, g->count + 1, struct node *);
  b.inner_of = arena_new_array(ctx->scratch, g->count + 1, int);
  b.member_of = arena_new_array(ctx->scratch, g->count + 1, int);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (!f->live[i] || b.made[i] || fuse_floats(n) || n->op == OP_assign || n->op == OP_constant) continue;
    int group = rooted(f, n);
    if (group != NOWHERE && f->groups[group].nmembers > 1)
      make_fused(&b, group);
    else if (group != NOWHERE || f->member_of[i] == NOWHERE)
      make_plain(&b, n);
  }
  for (uint32_t i = 0; i < g->count; i++)
    if (f->live[i] && g->nodes[i]->op == OP_assign && !b.made[i]) make_plain(&b, g->nodes[i]);
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    graph_add_output(b.g, o->role, o->name, value_of(&b, o->node), o->count);
  }
  return b.g;
}

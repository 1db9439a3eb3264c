/* SPDX-License-Identifier: Apache-2.0 */
/* Scans of the same steps over the same operands are one, with the results of all of them: a loop and its copy that
 * also keeps what it carries, for its gradient. What is stacked and not read is not stacked, what a step computes for
 * that alone is not computed, and what it then does not read is no operand. */
#include "passes/scans.h"

#include "ir/ops/op_id.h"
#include "ir/ops/scan.h"

/* A scan, and those that are one with it. */
struct merged {
  const struct node *leader; /* the first of them */
  uint32_t *stacks;          /* nodes of the body, */
  int nstacks;
  struct node *made;
};

struct scans {
  struct merged **of; /* by node of the graph */
  int **results;      /* by node: which results of its loop are those of the scan; -1: nobody reads it */
  bool changed;
};

static bool same_numbers(const struct scan *a, const struct scan *b) {
  return a->carries == b->carries && a->sequences == b->sequences && a->length == b->length &&
         a->reverse == b->reverse;
}

static bool same_steps(const struct node *a, const struct node *b) {
  struct scan x = scan_of(a), y = scan_of(b);
  if (!same_numbers(&x, &y) || a->ninputs != b->ninputs || a->tower != b->tower || a->replica != b->replica ||
      a->device != b->device || !str_same(a->want, b->want))
    return false;
  for (int i = 0; i < a->ninputs; i++)
    if (a->inputs[i] != b->inputs[i]) return false;
  for (int i = 0; i < x.carries; i++)
    if (x.body->outputs[i].node->id != y.body->outputs[i].node->id) return false;
  return graph_alike(x.body, y.body);
}

/* Which results are read: what is carried is computed in any case, and so is the first result. */
static uint8_t *find_read(struct pass_ctx *ctx, const struct users *users, const uint8_t *live,
                          const struct node *n) {
  uint8_t *read = arena_new_array(ctx->scratch, (size_t)node_results(n), uint8_t);
  for (int i = 0; i < node_results(n); i++) read[i] = i == 0 || i < node_int(n, ATTR_carries);
  for (uint32_t i = users->first[n->id]; i < users->first[n->id + 1]; i++) {
    const struct node *u = users->users[i];
    if (live[u->id] && u->op == OP_output) read[node_int(u, ATTR_index)] = 1;
  }
  return read;
}

static int stack_of(struct pass_ctx *ctx, struct merged *m, uint32_t id) {
  for (int i = 0; i < m->nstacks; i++)
    if (m->stacks[i] == id) return i;
  uint32_t *more = arena_new_array(ctx->scratch, (size_t)m->nstacks + 1, uint32_t);
  for (int i = 0; i < m->nstacks; i++) more[i] = m->stacks[i];
  more[m->nstacks] = id;
  m->stacks = more;
  return m->nstacks++;
}

static void add(struct pass_ctx *ctx, struct scans *s, const struct graph *g, const struct node *n,
                const uint8_t *read) {
  struct merged *m = NULL;
  for (uint32_t i = 0; i < n->id && !m; i++)
    if (s->of[i] && s->of[i]->leader == g->nodes[i] && same_steps(g->nodes[i], n)) m = s->of[i];
  s->changed |= m != NULL;
  if (!m) {
    m = arena_new(ctx->scratch, struct merged);
    *m = (struct merged){.leader = n};
  }
  struct scan scan = scan_of(n);
  s->of[n->id] = m;
  s->results[n->id] = arena_new_array(ctx->scratch, (size_t)node_results(n), int);
  for (int i = 0; i < node_results(n); i++) {
    int result = i;
    if (i >= scan.carries)
      result = read[i] ? scan.carries + stack_of(ctx, m, scan.body->outputs[i].node->id) : -1;
    s->results[n->id][i] = result;
    s->changed |= result < 0;
  }
}

struct scans *scans_find(struct pass_ctx *ctx, const struct graph *g) {
  if (!graph_has_op(g, OP_scan)) return NULL;
  struct scans *s = arena_new(ctx->scratch, struct scans);
  const uint8_t *live = graph_live(ctx->scratch, g);
  struct users users = graph_users(ctx->scratch, g);
  s->of = arena_new_array(ctx->scratch, g->count + 1, struct merged *);
  s->results = arena_new_array(ctx->scratch, g->count + 1, int *);
  for (uint32_t i = 0; i < g->count; i++)
    if (live[i] && g->nodes[i]->op == OP_scan)
      add(ctx, s, g, g->nodes[i], find_read(ctx, &users, live, g->nodes[i]));
  return s;
}

/* The nodes of the body that its results need, and what is carried. */
static uint8_t *find_needed(struct pass_ctx *ctx, const struct merged *m, const struct scan *s,
                            struct node *const *inputs) {
  const struct graph *body = s->body;
  uint8_t *needed = arena_new_array(ctx->scratch, body->count + 1, uint8_t);
  for (int i = 0; i < s->carries; i++) needed[inputs[i]->id] = needed[body->outputs[i].node->id] = 1;
  for (int i = 0; i < m->nstacks; i++) needed[m->stacks[i]] = 1;
  for (uint32_t i = body->count; i-- > 0;)
    for (int k = 0; needed[i] && k < body->nodes[i]->ninputs; k++) needed[body->nodes[i]->inputs[k]->id] = 1;
  return needed;
}

static struct node *make(struct pass_ctx *ctx, struct scans *all, struct graph *out, const struct merged *m,
                         struct node **in) {
  const struct node *n = m->leader;
  struct scan s = scan_of(n);
  const struct graph *body = s.body;
  struct node **inputs = scan_inputs(ctx->scratch, body);
  const uint8_t *needed = find_needed(ctx, m, &s, inputs);
  struct node **made = arena_new_array(ctx->scratch, body->count + 1, struct node *);
  struct node **operands = arena_new_array(ctx->scratch, (size_t)n->ninputs + 1, struct node *);
  int count = 0, sequences = 0;
  s.body = graph_create(ctx->scratch, body->name, out->diags);
  s.body->stage = body->stage;
  for (int i = 0; i < n->ninputs; i++) {
    if (!needed[inputs[i]->id]) continue;
    made[inputs[i]->id] = graph_node(s.body, inputs[i]);
    operands[count++] = in[i];
    sequences += i >= s.carries && i < s.carries + s.sequences;
  }
  s.sequences = sequences;
  if (!graph_copy_nodes(ctx->scratch, s.body, body, needed, made, build_again, NULL)) return NULL;
  for (int i = 0; i < s.carries; i++)
    graph_add_output(s.body, OUTPUT_VALUE, body->outputs[i].name, made[body->outputs[i].node->id], 0);
  for (int i = 0; i < m->nstacks; i++)
    graph_add_output(s.body, OUTPUT_VALUE, arena_printf(ctx->scratch, "stack_%d", i), made[m->stacks[i]], 0);
  all->changed |= count < n->ninputs || s.body->count < body->count;
  return build_scan(out, n->name, &s, count, operands);
}

struct node *scans_visit(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                         void *user) {
  struct scans *s = user;
  bool result = n->op == OP_output && n->inputs[0]->op == OP_scan;
  if (n->op != OP_scan && !result) return build_like(out, n, in, NULL);
  const struct node *scan = result ? n->inputs[0] : n;
  struct merged *m = s->of[scan->id];
  int index = s->results[scan->id][result ? node_int(n, ATTR_index) : 0];
  if (!m->made) m->made = make(ctx, s, out, m, in);
  return m->made ? scan_result(out, m->made, index, n->name) : NULL;
}

bool scans_changed(const struct scans *s) { return s && s->changed; }

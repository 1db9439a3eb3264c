/* SPDX-License-Identifier: Apache-2.0 */
/* Adding up what a plan takes. */
#include "ir/plan/report.h"

#include "ir/ops/op.h"
#include "ir/ops/op_id.h"

#include <stdlib.h>

const char *const purpose_names[PURPOSE_COUNT] = {"variable",   "slot",     "constant", "input",
                                                  "activation", "gradient", "update",   "result"};

/* What reads a value in the end. */
enum { FOR_UPDATE = 1, FOR_RESULT = 2, IS_OUTPUT = 4, IN_MODEL = 8 };

/* Results are what the caller gets, and the shares of it on their way from the towers. */
static uint8_t *graph_serves(struct arena *a, const struct graph *g) {
  uint8_t *serves = arena_new_array(a, g->count + 1, uint8_t);
  for (int i = 0; i < g->noutputs; i++)
    serves[g->outputs[i].node->id] |=
        g->outputs[i].role == OUTPUT_UPDATE ? FOR_UPDATE : FOR_RESULT | IS_OUTPUT;
  for (uint32_t i = g->count; i-- > 0;) {
    const struct node *n = g->nodes[i];
    bool inside = n->dist == DIST_PER_REPLICA || g->config.towers <= 1;
    if (n->op != OP_copy && inside && !(serves[i] & IS_OUTPUT)) serves[i] |= IN_MODEL;
    for (int k = 0; k < n->ninputs; k++)
      serves[n->inputs[k]->id] |= serves[i] & (FOR_UPDATE | FOR_RESULT | IN_MODEL);
  }
  return serves;
}

static enum purpose purpose_of(const struct node *n, uint8_t serves, const uint8_t *purposes) {
  if (n->op == OP_variable) return node_attr(n, ATTR_slot) ? PURPOSE_SLOT : PURPOSE_VARIABLE;
  if (n->op == OP_constant) return PURPOSE_CONSTANT;
  if (n->op == OP_input || n->op == OP_split) return PURPOSE_INPUT;
  if (n->op == OP_assign) return PURPOSE_UPDATE;
  if (n->op == OP_copy && purposes[n->inputs[0]->id] != PURPOSE_ACTIVATION)
    return (enum purpose)purposes[n->inputs[0]->id];
  if (n->backward) return PURPOSE_GRADIENT;
  if (serves & FOR_UPDATE) return serves & FOR_RESULT ? PURPOSE_ACTIVATION : PURPOSE_UPDATE;
  return serves & IN_MODEL ? PURPOSE_ACTIVATION : PURPOSE_RESULT;
}

uint8_t *graph_purposes(struct arena *a, const struct graph *g) {
  const uint8_t *serves = graph_serves(a, g);
  uint8_t *purposes = arena_new_array(a, g->count + 1, uint8_t);
  for (uint32_t i = 0; i < g->count; i++) purposes[i] = (uint8_t)purpose_of(g->nodes[i], serves[i], purposes);
  return purposes;
}

/* ---- memory ---- */

/* A buffer is for what it holds first. */
enum purpose buffer_purpose(const struct plan *p, const uint8_t *purposes, const struct plan_buffer *b) {
  const struct node *n = graph_find(p->graph, b->name);
  return n ? (enum purpose)purposes[n->id] : PURPOSE_ACTIVATION;
}

/* `device` by number; what has none, has a negative one. */
static struct held hold(struct arena *a, const int *device, int count, int ndevices) {
  int *first = arena_new_array(a, (size_t)ndevices + 2, int),
      *number = arena_new_array(a, (size_t)count, int);
  for (int i = 0; i < count; i++)
    if (device[i] >= 0) first[device[i] + 2]++;
  for (int d = 0; d < ndevices; d++) first[d + 2] += first[d + 1];
  for (int i = 0; i < count; i++)
    if (device[i] >= 0) number[first[device[i] + 1]++] = i;
  return (struct held){first, number};
}

struct inventory plan_inventory(struct arena *a, const struct plan *p) {
  const struct graph *g = p->graph;
  int nodes = (int)g->count,
      *device = arena_new_array(a, (size_t)(nodes > p->nbuffers ? nodes : p->nbuffers), int);
  struct inventory v = {.plan = p, .purposes = graph_purposes(a, g)};
  for (int i = 0; i < p->nbuffers; i++) device[i] = p->buffers[i].device;
  v.buffers = hold(a, device, p->nbuffers, p->ndevices);
  for (int i = 0; i < nodes; i++) device[i] = g->nodes[i]->device;
  v.nodes = hold(a, device, nodes, p->ndevices);
  return v;
}

/* The first step at which the most bytes are alive. */
static void find_peak(struct arena *a, const struct inventory *v, int device, struct memory_need *out) {
  const struct plan *p = v->plan;
  int nsteps = p->devices[device].nsteps;
  int64_t *change = arena_new_array(a, (size_t)nsteps + 2, int64_t), live = 0;
  for (int i = v->buffers.first[device]; i < v->buffers.first[device + 1]; i++) {
    const struct plan_buffer *b = &p->buffers[v->buffers.number[i]];
    if (b->region != REGION_ARENA) continue;
    change[b->first] += b->bytes;
    if (b->last < nsteps) change[b->last + 1] -= b->bytes;
  }
  for (int i = 0; i <= nsteps; i++) {
    live += change[i];
    if (live > out->peak) out->peak = live, out->step = i;
  }
}

struct memory_need memory_need(struct arena *a, const struct inventory *v, int device) {
  const struct plan *p = v->plan;
  struct memory_need m = {.arena = p->devices[device].bytes[REGION_ARENA]};
  find_peak(a, v, device, &m);
  m.total = m.arena;
  for (int i = v->buffers.first[device]; i < v->buffers.first[device + 1]; i++) {
    const struct plan_buffer *b = &p->buffers[v->buffers.number[i]];
    enum purpose purpose = buffer_purpose(p, v->purposes, b);
    if (b->region == REGION_ARENA) {
      if (b->first <= m.step && b->last >= m.step) m.at_peak[purpose] += b->bytes;
      continue;
    }
    int64_t size = plan_room(b->bytes);
    m.fixed[purpose] += size;
    m.total += size;
  }
  return m;
}

/* ---- what is computed again ---- */

static bool is_marked(const struct node *n) { return node_int_or(n, ATTR_again, 0); }

bool is_repeated(const struct node *n) {
  if (n->op == OP_fused) return is_marked(node_attr(n, ATTR_body)->body->outputs[0].node);
  if (n->op != OP_output) return is_marked(n);
  const struct graph *body = node_attr(n->inputs[0], ATTR_body)->body;
  return n->inputs[0]->op == OP_fused && is_marked(body->outputs[node_int(n, ATTR_index)].node);
}

struct repeated plan_repeated(const struct inventory *v, int device) {
  struct repeated r = {0};
  for (int i = v->nodes.first[device]; i < v->nodes.first[device + 1]; i++) {
    const struct node *n = v->plan->graph->nodes[v->nodes.number[i]];
    const struct graph *body = n->op == OP_fused ? node_attr(n, ATTR_body)->body : NULL;
    for (uint32_t k = 0; body && k < body->count; k++)
      if (is_marked(body->nodes[k])) r.flops += node_flops(body->nodes[k]);
    if (!body && is_marked(n)) r.flops += node_flops(n);
    if (!is_repeated(n) || node_is_strided(n) || op_of(n)->view) continue;
    r.values++;
    r.bytes += type_bytes(&n->type);
  }
  return r;
}

/* ---- traffic ---- */

static int by_edge(const void *a, const void *b) {
  const struct transfer *x = a, *y = b;
  if (x->from != y->from) return x->from - y->from;
  if (x->to != y->to) return x->to - y->to;
  if ((x->step < 0) != (y->step < 0)) return x->step < 0 ? 1 : -1;
  if (x->by != y->by) return x->by - y->by;
  if (x->step != y->step) return x->step - y->step;
  return x->node->id < y->node->id ? -1 : 1;
}

struct transfer *plan_transfers(struct arena *a, const struct plan *p, int *count) {
  const struct graph *g = p->graph;
  const uint8_t *purposes = graph_purposes(a, g), *live = graph_live(a, g);
  size_t most = 0;
  for (int d = 0; d < p->ndevices; d++) most += (size_t)p->devices[d].nsteps;
  struct transfer *all = arena_new_array(a, most + g->count, struct transfer);
  int n = 0;
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i < p->devices[d].nsteps; i++) {
      const struct step *s = &p->devices[d].steps[i];
      enum purpose purpose = s->node ? (enum purpose)purposes[s->node->id] : PURPOSE_ACTIVATION;
      if (s->kind == STEP_ALL_REDUCE) {
        const struct collective *c = s->collective;
        int rank = collective_rank_of(c, d), to = c->devices[(rank + 1) % c->count];
        all[n++] = (struct transfer){s->node, d, to, i, d, collective_bytes(c, rank), purpose, true};
      }
      if (s->kind == STEP_RECEIVE)
        all[n++] = (struct transfer){s->node, s->message->from, d, i, d, s->bytes, purpose, false};
      if (s->kind != STEP_COPY) continue;
      int from = p->buffers[s->operands[0].buffer].device, to = p->buffers[s->operands[1].buffer].device;
      if (from == to) continue;
      all[n++] = (struct transfer){s->node, from, to, i, d, s->bytes, purpose, false};
    }
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *c = g->nodes[i];
    if (c->op == OP_copy && live[i] && node_int_or(c, ATTR_alias, 0))
      all[n++] = (struct transfer){c, c->inputs[0]->device,      c->device, -1, c->device,
                                   0, (enum purpose)purposes[i], false};
  }
  qsort(all, (size_t)n, sizeof *all, by_edge);
  *count = n;
  return all;
}

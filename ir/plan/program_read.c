/* SPDX-License-Identifier: Apache-2.0 */
/* From plans to programs. A message of the plan of two tasks is known by the value that it carries: the share or the
 * total of a sum, or rows that all tasks gather. */
#include "ir/ops/op_id.h"
#include "ir/plan/program.h"

#include "ir/ops/op.h"

#include <string.h>

struct reading {
  struct arena *arena;
  int64_t rows;              /* of a task */
  struct map shares, totals; /* by name: 1 + the exchange */
  struct exchange *exchanges;
  int nexchanges;
  struct task_event *events;
  int nevents;
};

static void know(struct map *m, const char *name, int exchange) {
  map_put(m, name, (void *)(uintptr_t)(exchange + 1));
}

static int known(const struct map *m, const char *name) { return (int)(uintptr_t)map_get(m, name) - 1; }

static int add_exchange(struct reading *r, struct exchange x) {
  r->exchanges[r->nexchanges] = x;
  return r->nexchanges++;
}

/* ---- the graph ---- */

static void read_sum(struct reading *r, const struct node *n) {
  struct exchange x = {.kind = EXCHANGE_SUM,
                       .name = n->name,
                       .bytes = type_bytes(&n->type),
                       .elements = type_count(&n->type),
                       .adds = strcmp(node_string(n, ATTR_reduction), "sum") == 0};
  int exchange = add_exchange(r, x);
  know(&r->totals, n->name, exchange);
  for (int i = 0; i < n->ninputs; i++) know(&r->shares, n->inputs[i]->name, exchange);
}

/* Every copy of a variable gathers the same. What both tasks give is that of all their rows. */
static void read_rows(struct reading *r, const struct node *n) {
  if (known(&r->shares, n->inputs[0]->name) >= 0) return;
  int64_t bytes = type_bytes(&n->type) / (2 * (r->rows ? r->rows : 1));
  int exchange = add_exchange(r, (struct exchange){.kind = EXCHANGE_ROWS, .name = n->name, .bytes = bytes});
  for (int i = 0; i < n->ninputs; i++) know(&r->shares, n->inputs[i]->name, exchange);
}

static void read_graph(struct reading *r, const struct graph *g) {
  const uint8_t *live = graph_live(r->arena, g);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (!live[i] || n->ninputs < 2) continue;
    if (n->op == OP_all_reduce && !is_collective(n)) read_sum(r, n);
    if (n->op == OP_all_gather) read_rows(r, n);
  }
}

/* ---- the plan ---- */

/* The sum of which n is a part: it adds shares, maybe in the body of `kernel`. -1: none. */
static int sum_of(const struct reading *r, const struct node *n, const struct node *kernel) {
  int share = known(&r->shares, n->name);
  if (share >= 0) return r->exchanges[share].kind == EXCHANGE_SUM ? share : -1;
  if (n->op == OP_fused || n->op == OP_output) {
    const struct node *of = n->op == OP_output ? n->inputs[0] : n;
    const struct graph *body = node_attr(of, ATTR_body)->body;
    return sum_of(r, body->outputs[n == of ? 0 : node_int(n, ATTR_index)].node, of);
  }
  int found = -1;
  for (int i = 0; kernel && n->op == OP_input && i < kernel->ninputs && found < 0; i++)
    if (strcmp(kernel->inputs[i]->name, n->name) == 0) found = sum_of(r, kernel->inputs[i], NULL);
  if (n->op != OP_copy && op_of(n)->kind != KIND_ELEMENTWISE) return found;
  for (int i = 0; i < n->ninputs && found < 0; i++) found = sum_of(r, n->inputs[i], kernel);
  return found;
}

/* The exchange of the value that a message carries, or of what several towers have of it; -1: another value. */
static int exchange_of(const struct reading *r, const struct node *message, bool *total) {
  const struct node *n = message;
  while (n->op == OP_copy) n = n->inputs[0];
  int found = known(&r->shares, n->name);
  *total = found < 0;
  if (found < 0) found = known(&r->totals, n->name);
  if (found >= 0) return found;
  *total = false;
  bool partial = n->dist == DIST_PARTIAL || n->dist == DIST_PARTIAL_MAX || n->dist == DIST_PARTIAL_MIN;
  return partial ? sum_of(r, n, NULL) : -1;
}

static int event_of(const struct reading *r, enum task_event_kind kind, int exchange) {
  for (int i = 0; i < r->nevents; i++)
    if (r->events[i].kind == kind && r->events[i].exchange == exchange) return i;
  return -1;
}

static void compute(struct reading *r, double seconds) {
  struct task_event *last = r->nevents ? &r->events[r->nevents - 1] : NULL;
  if (last && last->kind == EVENT_COMPUTE)
    last->seconds += seconds;
  else
    r->events[r->nevents++] = (struct task_event){EVENT_COMPUTE, seconds, -1};
}

/* Of several shares the last one. */
static void give(struct reading *r, int exchange) {
  int before = event_of(r, EVENT_GIVE, exchange);
  if (before >= 0) r->events[before] = (struct task_event){.kind = EVENT_COMPUTE};
  r->events[r->nevents++] = (struct task_event){EVENT_GIVE, 0, exchange};
}

/* Of several messages the first one. */
static void take(struct reading *r, int exchange) {
  const struct exchange *x = &r->exchanges[exchange];
  bool gives = x->kind == EXCHANGE_SUM || x->kind == EXCHANGE_ROWS;
  if (event_of(r, EVENT_TAKE, exchange) >= 0) return;
  if (gives && event_of(r, EVENT_GIVE, exchange) < 0) give(r, exchange);
  r->events[r->nevents++] = (struct task_event){EVENT_TAKE, 0, exchange};
}

static void read_message(struct reading *r, const struct step *s) {
  bool sends = s->kind == STEP_SEND, total;
  const char *name = s->message->node->name;
  int exchange = exchange_of(r, s->message->node, &total);
  if (exchange < 0)
    exchange = add_exchange(r, (struct exchange){.kind = sends ? EXCHANGE_TO_MAIN : EXCHANGE_FROM_MAIN,
                                                 .name = name,
                                                 .bytes = s->message->bytes});
  if (!sends || total) r->exchanges[exchange].all = true; /* what another task needs, too, all do */
  if (total && s->message->node->op != OP_copy) r->exchanges[exchange].result = true;
  if (!sends)
    take(r, exchange);
  else if (!total)
    give(r, exchange);
}

/* What sums add is not the program's: it depends on the algorithm. */
static void read_computing(struct reading *r, const struct step *s, const struct speeds *m) {
  const char *name = s->node ? s->node->name : "";
  if (known(&r->totals, name) >= 0) return;
  compute(r, step_predict(s, m));
  int exchange = known(&r->shares, name);
  if (exchange >= 0 && event_of(r, EVENT_TAKE, exchange) < 0) give(r, exchange);
}

static struct program program_of(struct reading *r) {
  return (struct program){r->exchanges, r->nexchanges, r->events, r->nevents};
}

struct program program_of_two(struct arena *a, const struct graph *placed, const struct plan *p, int64_t rows,
                              const struct speeds *m) {
  size_t steps = 0;
  for (int d = 0; d < p->ndevices; d++) steps += (size_t)p->devices[d].nsteps;
  struct reading r = {.arena = a,
                      .rows = rows,
                      .shares = map_make(a),
                      .totals = map_make(a),
                      .exchanges = arena_new_array(a, placed->count + steps, struct exchange),
                      .events = arena_new_array(a, 2 * steps, struct task_event)};
  read_graph(&r, placed);
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; plan_process(p, d) == 1 && i < p->devices[d].nsteps; i++) {
      const struct step *s = &p->devices[d].steps[i];
      if (s->kind == STEP_SEND || s->kind == STEP_RECEIVE)
        read_message(&r, s);
      else
        read_computing(&r, s, m);
    }
  return program_of(&r);
}

struct program program_alone(struct arena *a, const struct plan *p, const struct speeds *m) {
  struct reading r = {.arena = a, .events = arena_new_array(a, 1, struct task_event)};
  compute(&r, plan_predict(a, p, m));
  return program_of(&r);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The part of one task: a graph that says what the devices of this task do, and of the others what they are sent and
 * what comes from them. Which device needs which value follows from the model and the strategy alone, so all tasks know
 * of each message the same. Where each device has a copy of every variable, all tasks do the same, each with its own
 * rows; else the task that holds a variable sends it to those that read it, and sums its gradient. */
#include "passes/strategy/task_graph.h"
#include "ir/ops/op_id.h"
#include "passes/strategy/strategy.h"

#include "ir/graph/build.h"
#include "ir/ops/op.h"

#include <string.h>

/* Whether sums are additions in one order, each on devices that are known before gradients are packed. */
static bool sums_are_plain(const struct config *c, bool hosts) {
  int algorithm = cross_device_number(c->cross_device);
  bool apart = algorithm >= 0 && cross_device_apart((enum cross_device)algorithm, hosts);
  return apart && !c->packs && !c->bytes_per_pack && !c->asynchronous;
}

/* Of the two halves of the tree each process has towers of one. */
static bool halves_are_apart(const struct config *c, const struct strategy *s, const struct task_graph *p) {
  int cut = tower_cut(s->towers);
  if (cross_device_number(c->cross_device) != CROSS_DEVICE_hierarchical_copy) return true;
  return s->towers > 1 && p->of[strategy_worker(s, cut - 1)] != p->of[strategy_worker(s, cut)];
}

/* Whether the first processes have towers, which follow each other; of copies of variables all processes have some. */
static bool towers_are_spread(const struct strategy *s, const struct task_graph *p) {
  for (int i = 0; i < s->nworkers; i++) {
    int process = p->of[s->workers[i]];
    if (process < p->of[s->workers[i ? i - 1 : 0]] || process > (i ? p->of[s->workers[i - 1]] + 1 : 0))
      return false;
  }
  return !s->mirrored || p->of[s->workers[s->nworkers - 1]] == p->count - 1;
}

static void find_firsts(struct arena *a, const struct config *c, const struct strategy *s,
                        struct task_graph *p) {
  p->first = arena_new_array(a, (size_t)p->count, int);
  p->nworkers = p->of[s->workers[s->nworkers - 1]] + 1;
  for (int i = c->target.ndevices; i-- > 0;)
    if (p->of[i] >= p->nworkers) p->first[p->of[i]] = i;
  for (int i = s->nworkers; i-- > 0;) p->first[p->of[s->workers[i]]] = s->workers[i];
}

/* Rows of a table that one device holds are looked up there, for the towers of others. */
static bool looks_up(const struct strategy *s, const struct node *n) {
  return !s->mirrored && n->op == OP_gather && n->inputs[0]->op == OP_variable;
}

bool task_graph_is_possible(struct arena *a, const struct graph *g, const struct config *c,
                            const struct strategy *s) {
  struct task_graph p = {.of = NULL};
  int *of = arena_new_array(a, (size_t)c->target.ndevices, int);
  p.of = of;
  p.count = target_processes(&c->target, of);
  bool hosts = cluster_hosts(a, c->cluster, &c->target) != NULL;
  if (p.count < 2 || s->towers < 2 || !sums_are_plain(c, hosts) || !towers_are_spread(s, &p)) return false;
  if (p.of[s->main] != 0 || p.of[s->consolidation] != 0 || !halves_are_apart(c, s, &p)) return false;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->want || n->op == OP_aggregate || n->op == OP_local || is_on_read(n) || looks_up(s, n))
      return false;
  }
  for (int i = 0; i < c->target.ndevices; i++)
    if (strcmp(c->target.devices[i].name.kind, "cpu") != 0) return false;
  return true;
}

bool task_graph_find(struct arena *a, const struct config *c, const struct strategy *s,
                     struct task_graph *out, struct diags *d) {
  *out = (struct task_graph){.process = -1};
  if (!c->task) return true;
  int *of = arena_new_array(a, (size_t)c->target.ndevices, int);
  out->count = target_processes(&c->target, of);
  out->of = of;
  out->process = target_process(&c->target, of, c->task);
  if (out->process < 0) {
    diag_error(d, c->asked.task, "the cluster has no task %s", c->task);
    diag_help(d, LOC_NONE, "a task is its job and its number, as worker:0");
    return false;
  }
  find_firsts(a, c, s, out);
  out->first_tower = s->towers;
  for (int t = s->towers; t-- > 0;) {
    if (!task_graph_has(out, strategy_worker(s, t))) continue;
    out->first_tower = t;
    out->ntowers++;
  }
  return true;
}

static bool sends(const struct node *n, const struct node *x, const int64_t *order, int norder) {
  int count;
  if (n->op != OP_send || n->inputs[0] != x) return false;
  const int64_t *have = node_ints(n, ATTR_order, &count);
  return count == norder && memcmp(have, order, (size_t)norder * sizeof *order) == 0;
}

struct node *task_graph_send(struct graph *g, struct node *x, int to, const int64_t *order, int norder) {
  if (!x) return NULL;
  build_at(g, x);
  g->at.want = NULL;
  g->at.why =
      (struct reason){.rule = arena_printf(g->arena, "sent to %s", g->config.target.devices[to].text)};
  struct attr attrs[2] = {attr_ints(ATTR_order, norder, order), attr_int(ATTR_peer, to)};
  const char *name = arena_printf(g->arena, "%s.to_%d", x->name, to);
  struct node *have = graph_find(g, name);
  /* What two nodes of the source are may be one here: it is sent for each of them, as it is received. */
  for (int again = 2; have && !sends(have, x, order, norder); again++)
    have = graph_find(g, name = arena_printf(g->arena, "%s.to_%d.%d", x->name, to, again));
  if (have) return have;
  struct node *n = build_named(g, name, OP_send, 1, &x, 2, attrs, NULL);
  if (n) graph_add_output(g, OUTPUT_SEND, n->name, n, 0);
  return n;
}

struct node *task_graph_remote(struct graph *g, const char *name, const struct type *t, int from, int device,
                               const int64_t *order, int norder) {
  struct attr attrs[2] = {attr_int(ATTR_peer, from), attr_ints(ATTR_order, norder, order)};
  g->at.device = device;
  g->at.want = NULL;
  g->at.pack = 0;
  const char *verb = norder ? "comes from" : "is on";
  g->at.why =
      (struct reason){.rule = arena_printf(g->arena, "%s %s", verb, g->config.target.devices[from].text)};
  return build_named(g, name, OP_remote, 0, NULL, 1 + (norder > 0), attrs, t);
}

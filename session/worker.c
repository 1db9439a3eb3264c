/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of one worker's step: of the graph for which that worker alone has towers. A server does its part in
 * stages. */
#include "session/worker.h"

#include "session/agree.h"
#include "session/compile.h"
#include "session/settle.h"
#include "session/state/running.h"
#include "session/state/settlement.h"
#include "session/state/values.h"

#include "ir/graph/graph.h"
#include "ir/plan/stages.h"
#include "planner/planner.h"
#include "runtime/mpi/transport.h"

/* `n`: where the source has it; NULL: nowhere. */
static enum dgc_status refuse_node(struct dgc_session *s, const struct node *n, const char *why) {
  diag_error(&s->diags, n ? n->loc : LOC_NONE, "staleness free: %s", why);
  diag_help(&s->diags, LOC_NONE, "--staleness N has an order, and takes it");
  return session_blame(s);
}

/* Whether nobody but the worker and the servers does anything, variables are the servers', and losses the worker's. */
static enum dgc_status check_alone(struct dgc_session *s, const struct plan *p, int worker,
                                   const bool *serves) {
  for (int d = 0; d < p->ndevices; d++) {
    int process = plan_process(p, d);
    if (process == worker || serves[process] || !p->devices[d].nsteps) continue;
    const struct node *n = p->devices[d].steps[0].node;
    return refuse_node(s, n,
                       arena_printf(s->call, "%s would have to compute %s for another worker",
                                    plan_device_text(p, d), n->name));
  }
  for (int i = 0; i < p->nbuffers; i++) {
    const struct plan_buffer *b = &p->buffers[i];
    if (b->region == REGION_VARIABLE && !serves[plan_process(p, b->device)])
      return refuse_node(s, graph_find(p->graph, b->name),
                         arena_printf(s->call, "variables are on parameter servers, and %s is on %s", b->name,
                                      plan_device_text(p, b->device)));
  }
  for (int i = 0; i < p->noutputs; i++) {
    const struct plan_value *v = &p->outputs[i];
    int device = p->buffers[v->operand.buffer].device;
    if (v->role == OUTPUT_LOSS && plan_process(p, device) != worker)
      return refuse_node(s, graph_find(p->graph, v->name),
                         arena_printf(s->call, "a worker computes its own loss, and %s is on %s", v->name,
                                      plan_device_text(p, device)));
  }
  return DGC_OK;
}

/* Whether each server can do its part in stages; the one that is this process gets them. */
static enum dgc_status find_stages(struct dgc_session *s, const struct plan *p, int worker,
                                   const bool *serves, struct plan_stages *own) {
  for (int i = 0; i < p->nprocesses; i++) {
    struct plan_stages all;
    if (!serves[i]) continue;
    if (!plan_stages(p->arena, p, i, worker, &all))
      return refuse_node(
          s, all.wrong,
          arena_printf(s->call, "a worker would have to wait for others: %s has to compute %s in its step",
                       plan_device_text(p, all.device), all.wrong->name));
    if (i == s->transport->rank) *own = all;
  }
  return DGC_OK;
}

static enum dgc_status load(struct dgc_session *s, struct worker_step *w, const struct plan *p,
                            struct exec **out) {
  *out = exec_load(p, &w->engines, s->values->store, s->running->workers, &s->diags);
  return *out && exec_set_limit(*out, (int)s->options.timeout, &s->diags) ? DGC_OK : DGC_RUNTIME;
}

static enum dgc_status load_stages(struct dgc_session *s, struct worker_step *w,
                                   const struct plan_stages *p) {
  struct arena *a = w->step->arena;
  w->asked = arena_new_array(a, (size_t)p->nasked + 1, struct exec *);
  w->traced_asked = arena_new_array(a, (size_t)p->nasked + 1, struct traced *);
  w->stages = p;
  enum dgc_status status = load(s, w, &p->first, &w->first);
  for (int i = 0; !status && i < p->nasked; i++) status = load(s, w, &p->asked[i], &w->asked[i]);
  return status ? status : load(s, w, &p->last, &w->step->exec);
}

static enum dgc_status build_step(struct dgc_session *s, struct worker_step *w, const struct transport *t) {
  struct loaded *l = w->step;
  struct graph *g = session_graph(s, l->arena, l->kind, l->batch, NULL);
  if (!g) return session_blame(s);
  struct plan *p = plan_build_local_results(l->arena, g, &s->diags);
  if (!p) return session_blame(s);
  if (!plan_verify(p, &s->diags)) return DGC_RUNTIME; /* plan_stages relies on it */
  l->graph = g;
  l->plan = p;
  struct plan_stages *own = arena_new(l->arena, struct plan_stages);
  size_t n = (size_t)p->ndevices;
  int *workers = arena_new_array(s->call, n, int), *servers = arena_new_array(s->call, n, int), nservers;
  bool *serves = arena_new_array(s->call, (size_t)p->nprocesses, bool);
  session_workers(s, workers, servers, &nservers);
  for (int i = 0; i < nservers; i++) serves[servers[i]] = true;
  enum dgc_status status = check_alone(s, p, workers[s->settlement->worker], serves);
  if (!status) status = find_stages(s, p, workers[s->settlement->worker], serves, own);
  if (!status) status = agree_on_plan(s, g, p);
  if (status || !t) return status;
  w->engines = *s->running->engines;
  w->engines.transport = t;
  if (!serves[s->transport->rank]) return load(s, w, p, &l->exec);
  return load_stages(s, w, own);
}

enum dgc_status worker_plan(struct dgc_session *s, int worker, int64_t batch, const struct transport *t,
                            struct worker_step *out) {
  struct arena *a = arena_create();
  struct loaded *l = arena_new(a, struct loaded);
  *l = (struct loaded){.kind = ENTRY_TRAIN, .batch = batch, .arena = a};
  *out = (struct worker_step){.step = l};
  s->settlement->worker = worker;
  enum dgc_status status = build_step(s, out, t);
  s->settlement->worker = 0;
  return status;
}

void worker_unload(struct worker_step *w) {
  if (!w->step) return;
  exec_unload(w->first);
  for (int i = 0; w->asked && w->asked[i]; i++) exec_unload(w->asked[i]);
  exec_unload(w->step->exec);
  arena_destroy(w->step->arena);
}

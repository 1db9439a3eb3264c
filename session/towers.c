/* SPDX-License-Identifier: Apache-2.0 */
/* Which process runs which towers: the strategy says on which device each tower is, and the cluster whose that is. */
#include "session/towers.h"

#include "session/compile.h"
#include "session/settle.h"
#include "session/state/settlement.h"

#include "ir/graph/graph.h"
#include "passes/strategy/strategy.h"
#include "runtime/data/loader.h"
#include "runtime/mpi/transport.h"

enum dgc_status session_towers(struct dgc_session *s, enum entry_kind kind, int64_t batch,
                               struct towers *out) {
  struct graph *g = session_source(s, s->call, kind, batch);
  const struct target *t = &g->config.target;
  struct strategy strategy;
  if (!strategy_resolve(s->call, g, &g->config, &strategy, &s->diags)) return session_blame(s);
  int *process = arena_new_array(s->call, (size_t)t->ndevices, int);
  target_processes(t, process);
  out->count = strategy.towers;
  out->process = arena_new_array(s->call, (size_t)out->count, int);
  for (int i = 0; i < out->count; i++) out->process[i] = process[strategy_worker(&strategy, i)];
  out->first = arena_new_array(s->call, (size_t)out->count + 1, int);
  out->workers = strategy_tasks(&strategy, t, out->first);
  out->first[out->workers] = out->count;
  return DGC_OK;
}

enum dgc_status session_own_towers(struct dgc_session *s, enum entry_kind kind, struct loader_options *o) {
  if (!s->transport) return DGC_OK;
  struct towers t;
  enum dgc_status status = session_towers(s, kind, o->batch, &t);
  if (status) return status;
  o->towers = t.count;
  for (int i = t.count; i-- > 0;) { /* a process's towers follow each other */
    if (t.process[i] != s->transport->rank) continue;
    if (!o->end_tower) o->end_tower = i + 1;
    o->first_tower = i;
  }
  return DGC_OK;
}

void session_say_idle_towers(struct dgc_session *s) {
  int64_t rows = session_batch(s), idle = s->settlement->config.towers - rows;
  if (idle > 0)
    diag_note(&s->diags, LOC_NONE, "a batch of %lld row%s leaves %lld of %lld towers without any",
              (long long)rows, rows == 1 ? "" : "s", (long long)idle,
              (long long)s->settlement->config.towers);
}

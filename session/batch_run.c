/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a dataset, into their plans; what the strategy does not take. */
#include "session/batch_run.h"

#include "session/compile.h"
#include "session/model.h"
#include "session/options.h"
#include "session/settle.h"
#include "session/state/calls.h"
#include "session/state/running.h"
#include "session/state/settlement.h"

#include "ir/graph/graph.h"
#include "passes/strategy/strategy.h"

const enum entry_kind entries_of[] = {ENTRY_TRAIN, ENTRY_EVAL, ENTRY_PREDICT};

static void *pinned_alloc(void *engines, size_t bytes) { return engines_pinned_alloc(engines, bytes); }
static void pinned_free(void *engines, void *data) { engines_pinned_free(engines, data); }

struct batch_memory session_batch_memory(const struct dgc_session *s) {
  if (!s->running->engines) return (struct batch_memory){0};
  return (struct batch_memory){pinned_alloc, pinned_free, s->running->engines};
}

static enum dgc_status write_batch(struct dgc_session *s, const struct loaded *l, struct exec *e,
                                   const struct dataset *ds, struct loader *loader, const struct batch *b) {
  int first_row = plan_input(l->plan, FIRST_ROW_INPUT);
  if (first_row >= 0 && !exec_write(e, first_row, &b->number)) return session_device_failed(s);
  for (int i = 0; i < ds->ncolumns; i++) {
    const struct tensor *column = &b->columns[i];
    int input = plan_input(l->plan, ds->columns[i].name);
    if (input < 0) continue;
    int64_t first = b->first, end = b->end;
    if ((first > 0 || end < b->rows) && !reads_rows(s, l, ds->columns[i].name, first, end)) {
      if (!loader_complete(loader, b, i, &s->diags)) return session_unread(s);
      first = 0, end = b->rows;
    }
    if (end > first && !exec_write_rows(e, input, column->data, first, end)) return session_device_failed(s);
  }
  return DGC_OK;
}

enum dgc_status session_batch_run_on(struct dgc_session *s, const struct loaded *l, const struct plan_run *r,
                                     const struct dataset *ds, struct loader *loader, const struct batch *b) {
  enum dgc_status status = write_batch(s, l, r->exec, ds, loader, b);
  return status ? status : session_run_exec(s, r);
}

enum dgc_status session_batch_run(struct dgc_session *s, enum entry_kind kind, const struct dataset *ds,
                                  struct loader *loader, const struct batch *b, struct loaded **out) {
  enum dgc_status status = session_plan(s, kind, b->rows, out);
  if (!status) status = write_batch(s, *out, (*out)->exec, ds, loader, b);
  return status ? status : session_run(s, *out);
}

static bool takes(struct dgc_session *s, enum entry_kind kind, int64_t rows, struct diags *why) {
  struct graph *g = session_source(s, s->call, kind, rows);
  struct strategy strategy;
  return strategy_resolve(s->call, g, &g->config, &strategy, why);
}

enum dgc_status session_takes(struct dgc_session *s, enum entry_kind kind, int64_t rows) {
  return takes(s, kind, rows, &s->diags) ? DGC_OK : session_blame(s);
}

void session_note_rows(struct dgc_session *s, enum data_use use, const struct dataset *data) {
  struct diags silent;
  diags_init(&silent, s->call);
  s->data->rows[use] = data->rows;
  if (!session_chooses(s) || !s->settlement->done || s->calls->listening) return;
  int64_t last = data->rows % session_batch(s);
  if (last && !takes(s, entries_of[use], last, &silent)) session_unsettle(s);
}

enum dgc_status session_takes_all(struct dgc_session *s, enum entry_kind kind, int64_t all) {
  int64_t batch = session_batch(s), last = all % batch;
  enum dgc_status status = last ? session_takes(s, kind, last) : DGC_OK;
  if (status)
    diag_note(&s->diags, LOC_NONE, "%s: %lld rows in batches of %lld end with one of %lld", entry_names[kind],
              (long long)all, (long long)batch, (long long)last);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation over files. */
#include "session/evaluate.h"

#include "session/agree.h"
#include "session/batch_run.h"
#include "session/data.h"
#include "session/metrics.h"
#include "session/settle.h"
#include "session/state/calls.h"
#include "session/state/data.h"
#include "session/state/tracing.h"
#include "session/trace.h"

enum dgc_status session_test_data(struct dgc_session *s, bool often, struct dataset **data) {
  *data = NULL;
  if (!entry_there(s, ENTRY_EVAL)) return DGC_OK;
  return often ? session_data(s, DATA_EVAL, true, data) : session_data_in_files(s, DATA_EVAL, true, data);
}

enum dgc_status session_agree_to_train(struct dgc_session *s, const struct dataset *data) {
  bool tested;
  enum dgc_status status = session_has_test_data(s, &tested);
  return status ? status : agree_on_training(s, data, tested);
}

static void finish_metrics(struct dgc_session *s, const struct totals *t, const struct dgc_metric **metrics,
                           int *count) {
  arena_reset(s->text);
  int n = s->model->nmeasures;
  struct dgc_metric *m = arena_new_array(s->text, (size_t)n, struct dgc_metric);
  totals_finish(s, t, m);
  for (int i = 0; i < n; i++) m[i].name = arena_strdup(s->text, m[i].name);
  if (metrics) *metrics = m;
  if (count) *count = n;
}

/* `inside`: of a training, which answers dgc_stop itself. */
static enum dgc_status evaluate_over(struct dgc_session *s, const struct dataset *ds, struct loader *loader,
                                     bool inside, struct totals *sums) {
  const struct batch *b;
  for (;;) {
    enum loader_status next = loader_next(loader, &b, &s->diags);
    if (next != LOADER_BATCH) return next == LOADER_END ? DGC_OK : session_unread(s);
    if (inside && !s->transport && atomic_load(&s->calls->stop)) return DGC_STOPPED;
    if (!inside && session_stopped(s)) return session_fail(s, DGC_STOPPED, "the evaluation was stopped");
    struct loaded *l;
    enum dgc_status status = session_batch_run(s, ENTRY_EVAL, ds, loader, b, &l);
    if (!status) status = totals_add(s, sums, l, b->rows);
    loader_release(loader, b);
    if (status) return status;
  }
}

static enum dgc_status open_evaluation(struct dgc_session *s, struct dataset **data) {
  enum dgc_status status = session_need(s, ENTRY_EVAL);
  if (!status) status = session_data(s, DATA_EVAL, false, data);
  if (!status) session_note_rows(s, DATA_EVAL, *data);
  if (!status) status = session_ready(s, ENTRY_EVAL);
  if (!status) status = agree_on_evaluation(s, *data);
  return status ? status : session_takes_all(s, ENTRY_EVAL, (*data)->rows);
}

/* All batches of e->data. */
static enum dgc_status run_all(struct dgc_session *s, struct data_reading *e, bool inside,
                               struct totals *sums) {
  enum dgc_status status = data_reading_begin(s, ENTRY_EVAL, e);
  return status ? status : evaluate_over(s, e->data, e->loader, inside, sums);
}

static enum dgc_status evaluate(struct dgc_session *s, const struct dgc_metric **metrics, int *count,
                                int64_t *rows) {
  struct data_reading e = {0};
  struct arena_guard guard;
  arena_guard(&guard, data_reading_end, &e);
  enum dgc_status status = open_evaluation(s, &e.data);
  struct totals *sums = status ? NULL : totals_begin(s, ENTRY_EVAL);
  bool training = s->tracing->trace != NULL; /* asks for this: the file is its */
  if (!status) status = trace_open(s);
  if (!status) status = run_all(s, &e, false, sums);
  enum dgc_status traced = training ? DGC_OK : trace_close(s);
  if (!status) status = traced;
  if (!status) finish_metrics(s, sums, metrics, count);
  if (!status && rows) *rows = e.data->rows;
  arena_unguard(&guard);
  data_reading_end(&e);
  return status;
}

static void end_loader(void *reading) { loader_destroy(((struct data_reading *)reading)->loader); }

enum dgc_status session_evaluate(struct dgc_session *s, const struct dataset *data, struct dgc_metric *out) {
  struct data_reading e = {.data = (struct dataset *)(uintptr_t)data};
  struct inner_arena inner;
  struct arena_guard guard;
  session_inner_begin(s, &inner);
  arena_guard(&guard, end_loader, &e);
  struct totals *sums = totals_begin(s, ENTRY_EVAL);
  enum dgc_status status = run_all(s, &e, true, sums);
  if (!status) totals_finish(s, sums, out);
  arena_unguard(&guard);
  end_loader(&e);
  session_inner_end(&inner);
  return status;
}

enum dgc_status dgc_evaluate(struct dgc_session *s, const struct dgc_metric **metrics, int *count,
                             int64_t *rows) {
  CALL(s, evaluate(s, metrics, count, rows));
}

static enum dgc_status find_data(struct dgc_session *s, bool *there) {
  return entry_there(s, ENTRY_EVAL) ? session_has_test_data(s, there) : DGC_OK;
}

static enum dgc_status find_data_call(struct dgc_session *s, bool *there) { CALL(s, find_data(s, there)); }

bool dgc_can_evaluate(struct dgc_session *s) {
  bool there = false;
  return find_data_call(s, &there) == DGC_OK && there;
}

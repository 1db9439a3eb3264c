/* Evaluation over files. */
#include "session/evaluate.h"

#include "session/data.h"
#include "session/metrics.h"
#include "session/strategy.h"
#include "session/towers.h"

enum dgc_status session_evaluation_rows(struct dgc_session *s, int64_t *rows) {
  struct dataset *ds = NULL;
  *rows = -1;
  if (!entry_there(s, ENTRY_EVAL)) return DGC_OK;
  enum dgc_status status = session_data(s, DATA_EVAL, true, &ds);
  if (!status && ds) *rows = ds->rows;
  dataset_close(ds);
  return status;
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

static enum dgc_status evaluate_over(struct dgc_session *s, const struct dataset *ds, struct loader *loader,
                                     struct totals *sums) {
  const struct batch *b;
  for (;;) {
    enum loader_status next = loader_next(loader, &b, &s->diags);
    if (next != LOADER_BATCH) return next == LOADER_END ? DGC_OK : session_unread(s);
    if (session_stopped(s)) return session_fail(s, DGC_STOPPED, "the evaluation was stopped");
    struct loaded *l;
    enum dgc_status status = session_batch_run(s, ENTRY_EVAL, ds, loader, b, &l);
    if (!status) status = totals_add(s, sums, l, b->rows);
    loader_release(loader, b);
    if (status) return status;
  }
}

struct evaluation {
  struct dataset *data;
  struct loader *loader;
};

static void end_evaluation(void *evaluation) {
  struct evaluation *e = evaluation;
  loader_destroy(e->loader);
  dataset_close(e->data);
}

static enum dgc_status evaluate(struct dgc_session *s, const struct dgc_metric **metrics, int *count,
                                int64_t *rows) {
  struct evaluation e = {0};
  struct arena_guard guard;
  arena_guard(&guard, end_evaluation, &e);
  enum dgc_status status = session_need(s, ENTRY_EVAL);
  if (!status) status = session_data(s, DATA_EVAL, false, &e.data);
  if (!status) status = session_ready(s, ENTRY_EVAL);
  if (!status) status = session_takes_all(s, ENTRY_EVAL, e.data->rows);
  if (status) goto end;
  struct totals *sums = totals_begin(s);
  struct loader_options lo = {.batch = session_batch(s), .epochs = 1};
  status = session_own_towers(s, ENTRY_EVAL, &lo);
  if (status) goto end;
  e.loader = loader_create(s->call, e.data, &lo, &s->diags);
  status = e.loader ? evaluate_over(s, e.data, e.loader, sums) : session_unread(s);
  if (status) goto end;
  finish_metrics(s, sums, metrics, count);
  if (rows) *rows = e.data->rows;
end:
  arena_unguard(&guard);
  end_evaluation(&e);
  return status;
}

enum dgc_status dgc_evaluate(struct dgc_session *s, const struct dgc_metric **metrics, int *count,
                             int64_t *rows) {
  CALL(s, evaluate(s, metrics, count, rows));
}

static enum dgc_status evaluation_rows_call(struct dgc_session *s, int64_t *rows) {
  CALL(s, session_evaluation_rows(s, rows));
}

bool dgc_can_evaluate(struct dgc_session *s) {
  int64_t rows = -1;
  return evaluation_rows_call(s, &rows) == DGC_OK && rows >= 0;
}

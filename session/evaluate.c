/* Evaluation over files. */
#include "session/evaluate.h"

#include "session/data.h"
#include "session/strategy.h"
#include "session/towers.h"

#include "ir/graph/graph.h"

#include <string.h>

enum dgc_status session_evaluation_rows(struct dgc_session *s, int64_t *rows) {
  struct dataset *ds = NULL;
  *rows = -1;
  if (!entry_there(s, ENTRY_EVAL)) return DGC_OK;
  enum dgc_status status = session_data(s, DATA_EVAL, true, &ds);
  if (!status && ds) *rows = ds->rows;
  dataset_close(ds);
  return status;
}

struct running_sum {
  double total, count;
};

static enum dgc_status add_outputs(struct dgc_session *s, const struct loaded *l, int64_t rows,
                                   struct running_sum *sums) {
  for (int i = 0; i < l->plan->noutputs; i++) {
    const struct plan_value *v = &l->plan->outputs[i];
    if (v->role != OUTPUT_METRIC && v->role != OUTPUT_COUNT) continue;
    double value;
    enum dgc_status status = output_number(s, l, i, &value);
    if (status) return status;
    sums[i].total += value;
    sums[i].count += (double)(v->count < 0 ? -v->count * rows : v->count);
  }
  return DGC_OK;
}

const struct output *metric_divisor(const struct graph *g, const struct output *metric) {
  for (int i = 0; metric->role == OUTPUT_METRIC && i < g->noutputs; i++)
    if (g->outputs[i].role == OUTPUT_COUNT && strcmp(g->outputs[i].name, metric->name) == 0)
      return &g->outputs[i];
  return NULL;
}

double metric_value(double sum, double count, bool ratio) {
  if (ratio) return count != 0 ? sum / count : 0;
  return count > 0 ? sum / count : sum;
}

static void finish_metrics(struct dgc_session *s, const struct graph *g, const struct running_sum *sums,
                           const struct dgc_metric **metrics, int *count) {
  arena_reset(s->text);
  struct dgc_metric *m = arena_new_array(s->text, (size_t)g->noutputs, struct dgc_metric);
  int n = 0;
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i], *by = metric_divisor(g, o);
    if (o->role != OUTPUT_METRIC) continue;
    double value = metric_value(sums[i].total, by ? sums[by - g->outputs].total : sums[i].count, by != NULL);
    m[n++] = (struct dgc_metric){arena_strdup(s->text, o->name), value};
  }
  if (metrics) *metrics = m;
  if (count) *count = n;
}

static enum dgc_status evaluate_over(struct dgc_session *s, const struct dataset *ds, struct loader *loader,
                                     struct running_sum *sums) {
  const struct batch *b;
  for (;;) {
    enum loader_status next = loader_next(loader, &b, &s->diags);
    if (next != LOADER_BATCH) return next == LOADER_END ? DGC_OK : session_unread(s);
    if (session_stopped(s)) return session_fail(s, DGC_STOPPED, "the evaluation was stopped");
    struct loaded *l;
    enum dgc_status status = session_batch_run(s, ENTRY_EVAL, ds, loader, b, &l);
    if (!status) status = add_outputs(s, l, b->rows, sums);
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
  const struct graph *g = entry_source(s, ENTRY_EVAL);
  struct running_sum *sums = arena_new_array(s->call, (size_t)g->noutputs, struct running_sum);
  struct loader_options lo = {.batch = session_batch(s), .epochs = 1};
  status = session_own_towers(s, ENTRY_EVAL, &lo);
  if (status) goto end;
  e.loader = loader_create(s->call, e.data, &lo, &s->diags);
  status = e.loader ? evaluate_over(s, e.data, e.loader, sums) : session_unread(s);
  if (status) goto end;
  finish_metrics(s, g, sums, metrics, count);
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

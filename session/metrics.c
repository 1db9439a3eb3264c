/* SPDX-License-Identifier: Apache-2.0 */
/* Totals over batches, in f64, and of integers in i64, modulo 2^64, so that they do not depend on the batches; and the
 * formulas that make metrics of them, which the evaluator of graphs computes. */
#include "session/metrics.h"

#include "ir/ops/op_id.h"
#include "session/run.h"

#include "ir/graph/graph.h"

#include <math.h>
#include <string.h>

struct total {
  struct tensor batch; /* what the last one gave */
  struct tensor all;   /* f64 or i64 */
  double count;        /* of a metric: what it is divided by */
};

struct totals {
  const struct graph *g;        /* the source of the entry */
  const struct graph *formulas; /* of its metrics; NULL: none is needed */
  const char **names;           /* of the metrics */
  struct total *of;             /* by output */
  bool begun;
};

/* Whether metrics are made of the output. */
static bool is_counted(const struct output *o) {
  switch (o->role) {
  case OUTPUT_METRIC:
  case OUTPUT_TOTAL:
  case OUTPUT_MAXIMUM:
  case OUTPUT_MINIMUM:
  case OUTPUT_SAME: return true;
  case OUTPUT_LOSS:
  case OUTPUT_PREDICT:
  case OUTPUT_VALUE:
  case OUTPUT_UPDATE:
  case OUTPUT_SEND:
  case OUTPUT_HELD:
  case OUTPUT_ROLES: break;
  }
  return false;
}

struct totals *totals_begin(struct dgc_session *s, enum entry_kind kind) {
  const struct model *m = s->model;
  struct totals *t = arena_new(s->call, struct totals);
  bool train = kind == ENTRY_TRAIN;
  *t = (struct totals){.g = entry_source(s, kind),
                       .formulas = train ? m->train_metrics : m->metrics,
                       .names = train ? m->train_measures : m->measures};
  t->of = arena_new_array(s->call, (size_t)t->g->noutputs, struct total);
  for (int i = 0; i < t->g->noutputs; i++) {
    struct total *to = &t->of[i];
    if (!is_counted(&t->g->outputs[i])) continue;
    to->batch.type = t->g->outputs[i].node->type;
    to->batch.data = arena_alloc(s->call, (size_t)type_bytes(&to->batch.type) + 1);
    to->all.type = to->batch.type;
    to->all.type.dtype = dtype_is_float((enum dtype)to->batch.type.dtype) ? DT_F64 : DT_I64;
    to->all.data = arena_alloc(s->call, (size_t)type_bytes(&to->all.type) + 1);
  }
  return t;
}

int totals_count(const struct dgc_session *s, enum entry_kind kind) {
  return kind == ENTRY_TRAIN ? s->model->ntrain_measures : s->model->nmeasures;
}

void totals_clear(struct totals *t) {
  t->begun = false;
  for (int i = 0; i < t->g->noutputs; i++) t->of[i].count = 0;
}

/* ---- numbers ---- */

double number_at(enum dtype d, const void *data, int64_t i) {
  switch (d) {
  case DT_F32: return (double)((const float *)data)[i];
  case DT_F64: return ((const double *)data)[i];
  case DT_I32: return ((const int32_t *)data)[i];
  case DT_I64: return (double)((const int64_t *)data)[i];
  case DT_U8:
  case DT_BOOL: return ((const uint8_t *)data)[i];
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return 0;
}

static double number_of(const struct tensor *t, int64_t i) {
  return number_at((enum dtype)t->type.dtype, t->data, i);
}

static bool is_whole(const struct tensor *t) { return !dtype_is_float((enum dtype)t->type.dtype); }

static int64_t whole_of(const struct tensor *t, int64_t i) {
  switch ((enum dtype)t->type.dtype) {
  case DT_I32: return ((const int32_t *)t->data)[i];
  case DT_I64: return ((const int64_t *)t->data)[i];
  case DT_U8:
  case DT_BOOL: return ((const uint8_t *)t->data)[i];
  case DT_F32:
  case DT_F64:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return 0;
}

/* ---- batches ---- */

enum join { JOIN_LAST, JOIN_SUM, JOIN_MAX, JOIN_MIN };

static enum join join_of(enum output_role role) {
  switch (role) {
  case OUTPUT_METRIC:
  case OUTPUT_TOTAL: return JOIN_SUM;
  case OUTPUT_MAXIMUM: return JOIN_MAX;
  case OUTPUT_MINIMUM: return JOIN_MIN;
  case OUTPUT_SAME:
  case OUTPUT_LOSS:
  case OUTPUT_PREDICT:
  case OUTPUT_VALUE:
  case OUTPUT_UPDATE:
  case OUTPUT_SEND:
  case OUTPUT_HELD:
  case OUTPUT_ROLES: break;
  }
  return JOIN_LAST;
}

static double join_reals(enum join join, double a, double b) {
  switch (join) {
  case JOIN_SUM: return a + b;
  case JOIN_MAX: return isnan(a) || a > b ? a : b;
  case JOIN_MIN: return isnan(a) || a < b ? a : b;
  case JOIN_LAST: break;
  }
  return b;
}

static int64_t join_wholes(enum join join, int64_t a, int64_t b) {
  switch (join) {
  case JOIN_SUM: return (int64_t)((uint64_t)a + (uint64_t)b);
  case JOIN_MAX: return a > b ? a : b;
  case JOIN_MIN: return a < b ? a : b;
  case JOIN_LAST: break;
  }
  return b;
}

/* Adds what the batch gave, or begins with it. */
static void join_batch(const struct total *to, enum join join) {
  for (int64_t i = 0; i < type_count(&to->batch.type); i++)
    if (is_whole(&to->all)) {
      int64_t *all = (int64_t *)to->all.data + i;
      *all = join_wholes(join, *all, whole_of(&to->batch, i));
    } else {
      double *all = (double *)to->all.data + i;
      *all = join_reals(join, *all, number_of(&to->batch, i));
    }
}

static bool is_small(const struct totals *t, int output) {
  return type_bytes(&t->of[output].batch.type) <= DEFERRED_BYTES;
}

bool totals_wait(const struct totals *t) {
  bool large = false;
  for (int i = 0; i < t->g->noutputs; i++) large |= is_counted(&t->g->outputs[i]) && !is_small(t, i);
  return large;
}

enum dgc_status totals_read_begin(struct dgc_session *s, struct totals *t, const struct loaded *l,
                                  struct deferred_read *reads) {
  for (int i = 0; i < t->g->noutputs; i++) {
    const struct output *o = &t->g->outputs[i];
    if (!is_counted(o) || !is_small(t, i)) continue;
    if (!exec_read_begin(l->exec, plan_output(l->plan, o->role, o->name), &reads[i]))
      return session_device_failed(s);
  }
  return DGC_OK;
}

static enum dgc_status add_output(struct dgc_session *s, struct totals *t, const struct loaded *l, int output,
                                  int64_t rows, const struct deferred_read *r) {
  const struct output *o = &t->g->outputs[output];
  struct total *to = &t->of[output];
  int at = plan_output(l->plan, o->role, o->name);
  bool there = r ? exec_read_end(l->exec, r, to->batch.data) : exec_read(l->exec, at, to->batch.data);
  if (!there) return session_device_failed(s);
  join_batch(to, t->begun ? join_of(o->role) : JOIN_LAST);
  int64_t count = l->plan->outputs[at].count;
  to->count += (double)(count < 0 ? -count * rows : count);
  return DGC_OK;
}

enum dgc_status totals_read_end(struct dgc_session *s, struct totals *t, const struct loaded *l, int64_t rows,
                                const struct deferred_read *reads) {
  for (int i = 0; i < t->g->noutputs; i++) {
    if (!is_counted(&t->g->outputs[i])) continue;
    enum dgc_status status = add_output(s, t, l, i, rows, reads && is_small(t, i) ? &reads[i] : NULL);
    if (status) return status;
  }
  t->begun = true;
  return DGC_OK;
}

enum dgc_status totals_add(struct dgc_session *s, struct totals *t, const struct loaded *l, int64_t rows) {
  return totals_read_end(s, t, l, rows, NULL);
}

/* ---- metrics ---- */

void totals_average(const struct totals *t, int output, double *sum, double *count) {
  *sum = number_of(&t->of[output].all, 0);
  *count = t->of[output].count;
}

void totals_elements(const struct totals *t, int output, double *out) {
  const struct tensor *all = &t->of[output].all;
  for (int64_t i = 0; i < type_count(&all->type); i++) out[i] = number_of(all, i);
}

/* The total that an input of the formulas stands for. */
static void fill_input(const struct totals *t, const struct map *outputs, const struct node *n,
                       const struct tensor *to) {
  const struct output *o = map_get(outputs, n->name);
  const struct tensor *from = &t->of[o - t->g->outputs].all;
  for (int64_t i = 0; i < type_count(&n->type); i++)
    if (n->type.dtype == DT_BOOL)
      ((uint8_t *)to->data)[i] = (uint8_t)whole_of(from, i);
    else
      memcpy((char *)to->data + 8 * i, (const char *)from->data + 8 * i,
             8); /* f64 or i64, as formulas have */
}

/* Every node of the formulas, by id. Without totals, the only input is this step. */
static struct tensor *compute(struct dgc_session *s, const struct totals *t, int64_t step,
                              const struct graph *g) {
  struct tensor *values = arena_new_array(s->call, g->count, struct tensor);
  struct map outputs = map_make(s->call);
  for (int i = 0; t && i < t->g->noutputs; i++)
    if (is_counted(&t->g->outputs[i]) && t->g->outputs[i].role != OUTPUT_METRIC)
      map_put(&outputs, t->g->outputs[i].name, (void *)(uintptr_t)&t->g->outputs[i]);
  for (uint32_t id = 0; id < g->count; id++) {
    const struct node *n = g->nodes[id];
    struct tensor *in = arena_new_array(s->call, (size_t)n->ninputs + 1, struct tensor);
    for (int i = 0; i < n->ninputs; i++) in[i] = values[n->inputs[i]->id];
    values[id] = (struct tensor){n->type, arena_alloc(s->call, (size_t)type_bytes(&n->type) + 1)};
    if (n->op == OP_input && !t)
      *(int64_t *)values[id].data = step;
    else if (n->op == OP_input)
      fill_input(t, &outputs, n, &values[id]);
    else
      node_eval(n, in, &values[id], 0);
  }
  return values;
}

/* In the order of the model's text. */
static struct dgc_metric *place_of(const struct totals *t, struct dgc_metric *metrics, const char *name) {
  int i = 0;
  while (strcmp(t->names[i], name) != 0) i++;
  metrics[i].name = name;
  return &metrics[i];
}

void totals_finish(struct dgc_session *s, const struct totals *t, struct dgc_metric *metrics) {
  for (int i = 0; i < t->g->noutputs; i++) {
    const struct output *o = &t->g->outputs[i];
    if (o->role != OUTPUT_METRIC) continue;
    double sum, count;
    totals_average(t, i, &sum, &count);
    place_of(t, metrics, o->name)->value = count > 0 ? sum / count : sum;
  }
  const struct graph *g = t->formulas;
  const struct tensor *values = g ? compute(s, t, 0, g) : NULL;
  for (int i = 0; g && i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    place_of(t, metrics, o->name)->value = number_of(&values[o->node->id], 0);
  }
}

int session_rates(struct dgc_session *s, int64_t step, struct dgc_metric *out) {
  const struct graph *g = s->model->rates;
  struct inner_arena inner;
  if (!g) return 0;
  session_inner_begin(s, &inner);
  const struct tensor *values = compute(s, NULL, step, g);
  for (int i = 0; i < g->noutputs; i++)
    out[i] = (struct dgc_metric){g->outputs[i].name, number_of(&values[g->outputs[i].node->id], 0)};
  session_inner_end(&inner);
  return g->noutputs;
}

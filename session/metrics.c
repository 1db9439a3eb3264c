/* Totals over batches, in f64, and the formulas that make metrics of them, which the evaluator of graphs computes. */
#include "session/metrics.h"

#include "session/run.h"

#include "ir/graph/graph.h"

#include <math.h>
#include <string.h>

struct total {
  struct tensor batch; /* what the last one gave */
  double *elements;
  double count; /* of a metric: what it is divided by */
};

struct totals {
  const struct graph *g; /* the source of the entry eval */
  struct total *of;      /* by output */
  bool begun;
};

struct totals *totals_begin(struct dgc_session *s) {
  struct totals *t = arena_new(s->call, struct totals);
  t->g = entry_source(s, ENTRY_EVAL);
  t->of = arena_new_array(s->call, (size_t)t->g->noutputs, struct total);
  for (int i = 0; i < t->g->noutputs; i++) {
    struct total *to = &t->of[i];
    to->batch.type = t->g->outputs[i].node->type;
    to->batch.data = arena_alloc(s->call, (size_t)type_bytes(&to->batch.type) + 1);
    to->elements = arena_new_array(s->call, (size_t)type_count(&to->batch.type) + 1, double);
  }
  return t;
}

/* ---- numbers ---- */

static double number_at(const struct tensor *t, int64_t i) {
  switch ((enum dtype)t->type.dtype) {
  case DT_F32: return (double)((const float *)t->data)[i];
  case DT_F64: return ((const double *)t->data)[i];
  case DT_I32: return ((const int32_t *)t->data)[i];
  case DT_I64: return (double)((const int64_t *)t->data)[i];
  case DT_U8:
  case DT_BOOL: return ((const uint8_t *)t->data)[i];
  case DT_BF16:
  case DT_COUNT: break;
  }
  return 0;
}

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static void put_number(const struct tensor *t, int64_t i, double x) {
  switch ((enum dtype)t->type.dtype) {
  case DT_F32: ((float *)t->data)[i] = (float)x; break;
  case DT_F64: ((double *)t->data)[i] = x; break;
  case DT_I32: ((int32_t *)t->data)[i] = (int32_t)clamp(x, INT32_MIN, INT32_MAX); break;
  case DT_I64: ((int64_t *)t->data)[i] = x >= 0x1p63 ? INT64_MAX : (int64_t)clamp(x, -0x1p63, 0x1p63); break;
  case DT_U8:
  case DT_BOOL: ((uint8_t *)t->data)[i] = (uint8_t)clamp(x, 0, UINT8_MAX); break;
  case DT_BF16:
  case DT_COUNT: break;
  }
}

/* ---- batches ---- */

static double joined(enum output_role role, double a, double b) {
  switch (role) {
  case OUTPUT_METRIC:
  case OUTPUT_TOTAL: return a + b;
  case OUTPUT_MAXIMUM: return isnan(a) || a > b ? a : b;
  case OUTPUT_MINIMUM: return isnan(a) || a < b ? a : b;
  case OUTPUT_SAME:
  case OUTPUT_LOSS:
  case OUTPUT_PREDICT:
  case OUTPUT_VALUE:
  case OUTPUT_UPDATE:
  case OUTPUT_SEND:
  case OUTPUT_HELD:
  case OUTPUT_ROLES: break;
  }
  return b;
}

static enum dgc_status add_output(struct dgc_session *s, struct totals *t, const struct loaded *l, int output,
                                  int64_t rows) {
  const struct output *o = &t->g->outputs[output];
  struct total *to = &t->of[output];
  int at = plan_output(l->plan, o->role, o->name);
  if (!exec_read(l->exec, at, to->batch.data)) return session_device_failed(s);
  for (int64_t i = 0; i < type_count(&to->batch.type); i++) {
    double x = number_at(&to->batch, i);
    to->elements[i] = t->begun ? joined(o->role, to->elements[i], x) : x;
  }
  int64_t count = l->plan->outputs[at].count;
  to->count += (double)(count < 0 ? -count * rows : count);
  return DGC_OK;
}

enum dgc_status totals_add(struct dgc_session *s, struct totals *t, const struct loaded *l, int64_t rows) {
  for (int i = 0; i < t->g->noutputs; i++) {
    enum dgc_status status = add_output(s, t, l, i, rows);
    if (status) return status;
  }
  t->begun = true;
  return DGC_OK;
}

/* ---- metrics ---- */

void totals_average(const struct totals *t, int output, double *sum, double *count) {
  *sum = t->of[output].elements[0];
  *count = t->of[output].count;
}

const double *totals_elements(const struct totals *t, int output) { return t->of[output].elements; }

/* The total that an input of the formulas stands for. */
static void fill_input(const struct totals *t, const struct map *outputs, const struct node *n,
                       const struct tensor *to) {
  const struct output *o = map_get(outputs, n->name);
  const double *from = t->of[o - t->g->outputs].elements;
  for (int64_t i = 0; i < type_count(&n->type); i++) put_number(to, i, from[i]);
}

/* Every node of the formulas, by id. */
static struct tensor *compute(struct dgc_session *s, const struct totals *t, const struct graph *g) {
  struct tensor *values = arena_new_array(s->call, g->count, struct tensor);
  struct map outputs = map_make(s->call);
  for (int i = 0; i < t->g->noutputs; i++)
    if (t->g->outputs[i].role != OUTPUT_METRIC)
      map_put(&outputs, t->g->outputs[i].name, (void *)(uintptr_t)&t->g->outputs[i]);
  for (uint32_t id = 0; id < g->count; id++) {
    const struct node *n = g->nodes[id];
    struct tensor *in = arena_new_array(s->call, (size_t)n->ninputs + 1, struct tensor);
    for (int i = 0; i < n->ninputs; i++) in[i] = values[n->inputs[i]->id];
    values[id] = (struct tensor){n->type, arena_alloc(s->call, (size_t)type_bytes(&n->type) + 1)};
    if (n->op == OP_input)
      fill_input(t, &outputs, n, &values[id]);
    else
      node_eval(n, in, &values[id], 0);
  }
  return values;
}

/* In the order of the model's text. */
static struct dgc_metric *place_of(const struct dgc_session *s, struct dgc_metric *metrics,
                                   const char *name) {
  int i = 0;
  while (strcmp(s->model->measures[i], name) != 0) i++;
  metrics[i].name = name;
  return &metrics[i];
}

void totals_finish(struct dgc_session *s, const struct totals *t, struct dgc_metric *metrics) {
  for (int i = 0; i < t->g->noutputs; i++) {
    const struct output *o = &t->g->outputs[i];
    if (o->role != OUTPUT_METRIC) continue;
    double sum, count;
    totals_average(t, i, &sum, &count);
    place_of(s, metrics, o->name)->value = count > 0 ? sum / count : sum;
  }
  const struct graph *g = entry_source(s, ENTRY_METRICS);
  const struct tensor *values = g ? compute(s, t, g) : NULL;
  for (int i = 0; g && i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    place_of(s, metrics, o->name)->value = number_at(&values[o->node->id], 0);
  }
}

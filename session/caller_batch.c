/* SPDX-License-Identifier: Apache-2.0 */
/* Single batches, of the caller's own. */
#include "ir/ops/op_id.h"
#include "session/metrics.h"
#include "session/run.h"
#include "session/state/parts.h"

#include "ir/graph/graph.h"
#include "runtime/data/data.h"

#include <string.h>

/* The entry of this name without a word about it if there is none. */
static const struct graph *find_entry(const struct dgc_session *s, const char *name, enum entry_kind *kind) {
  for (int i = 0; s->model && i < ENTRY_COUNT; i++)
    if (strcmp(name, entry_names[i]) == 0) {
      *kind = (enum entry_kind)i;
      return entry_source(s, *kind);
    }
  return NULL;
}

/* What the caller has arrays for. */
static const struct node *source_input(const struct graph *g, int index) {
  for (uint32_t i = 0; g && i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->op == OP_input && strcmp(n->name, FIRST_ROW_INPUT) != 0 && index-- == 0) return n;
  }
  return NULL;
}

/* --- what a batch gives --- */

enum result_part { VALUE, SUM, COUNT };

/* One of the things that dgc_output lists: an output of the source graph or of the formulas, or what a metric is made
 * of: a half of it, or a total. */
struct result {
  const struct graph *g;
  int output;
  enum result_part part;
};

static const struct output *output_of(const struct result *r) { return &r->g->outputs[r->output]; }

/* Whether formulas read the output. */
static bool is_total(const struct output *o) {
  return o->role == OUTPUT_TOTAL || o->role == OUTPUT_MAXIMUM || o->role == OUTPUT_MINIMUM ||
         o->role == OUTPUT_SAME;
}

static bool is_listed(const struct output *o, enum result_part part) {
  if (part != VALUE) return (o->role == OUTPUT_METRIC && o->count) || (part == SUM && is_total(o));
  return o->role != OUTPUT_UPDATE && !is_total(o);
}

/* First the values, then, where they are asked for, what those are made of that add up over batches. */
static bool nth_result(const struct dgc_session *s, enum entry_kind kind, int index, struct result *out) {
  const struct graph *eval = entry_source(s, kind), *formulas = NULL;
  if (kind == ENTRY_EVAL) formulas = s->model->metrics;
  if (kind == ENTRY_TRAIN) formulas = s->model->train_metrics;
  for (int i = 0; eval && i < eval->noutputs; i++) {
    *out = (struct result){eval, i, VALUE};
    if (is_listed(&eval->outputs[i], VALUE) && index-- == 0) return true;
  }
  for (int i = 0; formulas && i < formulas->noutputs; i++) {
    *out = (struct result){formulas, i, VALUE};
    if (index-- == 0) return true;
  }
  for (int i = 0; eval && s->options.sums && i < eval->noutputs; i++)
    for (enum result_part part = SUM; part <= COUNT; part++) {
      *out = (struct result){eval, i, part};
      if (is_listed(&eval->outputs[i], part) && index-- == 0) return true;
    }
  return false;
}

/* What the metrics of this batch are made of, and the metrics. */
struct evaluated {
  struct totals *totals; /* NULL: the entry has none */
  struct dgc_metric *metrics;
};

static enum dgc_status evaluate_batch(struct dgc_session *s, const struct loaded *l, struct evaluated *e) {
  *e = (struct evaluated){totals_begin(s, l->kind),
                          arena_new_array(s->call, (size_t)totals_count(s, l->kind) + 1, struct dgc_metric)};
  enum dgc_status status = totals_add(s, e->totals, l, l->batch);
  if (!status) totals_finish(s, e->totals, e->metrics);
  return status;
}

static void put(const struct type *t, double value, void *out) {
  if (t->dtype == DT_F64)
    memcpy(out, &value, sizeof value);
  else
    memcpy(out, &(float){(float)value}, sizeof(float));
}

static void put_metric(const struct evaluated *e, const struct output *o, void *out) {
  const struct dgc_metric *m = e->metrics;
  while (strcmp(m->name, o->name) != 0) m++;
  put(&o->node->type, m->value, out);
}

static void put_part(const struct evaluated *e, const struct result *r, void *out) {
  const struct output *o = output_of(r);
  double sum, count;
  totals_average(e->totals, r->output, &sum, &count);
  if (is_total(o))
    totals_elements(e->totals, r->output, out);
  else if (r->part == COUNT)
    memcpy(out, &count, sizeof count);
  else
    put(&o->node->type, sum, out);
}

static enum dgc_status read_result(struct dgc_session *s, const struct loaded *l, const struct evaluated *e,
                                   const struct result *r, void *out) {
  const struct output *o = output_of(r);
  if (r->part != VALUE)
    put_part(e, r, out);
  else if (o->role == OUTPUT_METRIC)
    put_metric(e, o, out);
  else if (!exec_read(l->exec, plan_output(l->plan, o->role, o->name), out))
    return session_device_failed(s);
  return DGC_OK;
}

/* --- descriptions --- */

bool dgc_input(struct dgc_session *s, const char *entry, int index, struct dgc_tensor *out) {
  enum entry_kind kind;
  const struct node *n = source_input(find_entry(s, entry, &kind), index);
  if (n) tensor_describe(n->name, &n->type, out);
  return n != NULL;
}

/* "accuracy.sum", for as long as the session lives. */
static const char *part_name(struct dgc_session *s, const struct result *r) {
  const struct output *o = output_of(r);
  if (is_total(o)) return o->name;
  const char *name = arena_printf(s->call, "%s.%s", o->name, r->part == SUM ? "sum" : "count");
  for (int i = 0; i < s->parts->names.count; i++)
    if (strcmp(s->parts->names.items[i], name) == 0) return s->parts->names.items[i];
  list_append(s->arena, &s->parts->names, name);
  return s->parts->names.items[s->parts->names.count - 1];
}

static enum dgc_status describe_part(struct dgc_session *s, const struct result *r, struct dgc_tensor *out) {
  struct type t = output_of(r)->node->type;
  if (r->part == COUNT || is_total(output_of(r))) t.dtype = DT_F64;
  tensor_describe(part_name(s, r), &t, out);
  return DGC_OK;
}

static enum dgc_status describe_part_call(struct dgc_session *s, const struct result *r,
                                          struct dgc_tensor *out) {
  CALL(s, describe_part(s, r, out));
}

bool dgc_output(struct dgc_session *s, const char *entry, int index, struct dgc_tensor *out) {
  enum entry_kind kind;
  struct result r;
  if (!find_entry(s, entry, &kind) || !nth_result(s, kind, index, &r)) return false;
  if (r.part != VALUE) return describe_part_call(s, &r, out) == DGC_OK;
  tensor_describe(output_of(&r)->name, &output_of(&r)->node->type, out);
  return true;
}

/* --- runs --- */

/* The caller's numbers must be what the model can use, as those in files. */
static enum dgc_status check_range(struct dgc_session *s, const char *name, int64_t rows, const void *data) {
  for (int i = 0; i < s->model->ninputs; i++) {
    const struct model_input *in = &s->model->inputs[i];
    if (in->low > in->high || strcmp(in->name, name) != 0) continue;
    struct type row = type_row(&in->type);
    int64_t wrong =
        numbers_outside((enum dtype)row.dtype, data, rows * type_count(&row), in->low, in->high, in->ends);
    if (wrong < 0) continue;
    return session_fail(s, DGC_INPUT, "row %lld of input '%s': its values must be %s%lld %s %lld",
                        (long long)(wrong / type_count(&row)), name, in->ends ? "" : "from ",
                        (long long)in->low, in->ends ? "or" : "to", (long long)in->high);
  }
  return DGC_OK;
}

static enum dgc_status run_batch(struct dgc_session *s, const char *entry, int64_t first, int64_t rows,
                                 const void *const *inputs, void *const *outputs) {
  enum entry_kind kind;
  struct loaded *l;
  enum dgc_status status = entry_find(s, entry, &kind);
  if (!status && rows < 1) status = session_fail(s, DGC_USAGE, "a batch of %lld rows", (long long)rows);
  if (!status && first < 0)
    status = session_fail(s, DGC_USAGE, "rows are numbered from 0 on, not from %lld", (long long)first);
  if (!status) status = session_ready(s, kind);
  if (!status) status = session_plan(s, kind, rows, &l);
  if (status) return status;
  const struct graph *g = entry_source(s, kind);
  const struct node *n;
  int number = plan_input(l->plan, FIRST_ROW_INPUT);
  if (number >= 0 && !exec_write(l->exec, number, &first)) return session_device_failed(s);
  for (int i = 0; (n = source_input(g, i)); i++) {
    int input = plan_input(l->plan, n->name);
    if (input < 0) continue;
    if (!inputs || !inputs[i]) return session_fail(s, DGC_USAGE, "there is no array for input '%s'", n->name);
    status = check_range(s, n->name, rows, inputs[i]);
    if (status) return status;
    if (!exec_write(l->exec, input, inputs[i])) return session_device_failed(s);
  }
  status = session_run(s, l);
  if (status) return status;
  if (kind == ENTRY_TRAIN) s->position.step++;
  struct result r;
  struct evaluated e = {0};
  bool measures = kind == ENTRY_EVAL || (kind == ENTRY_TRAIN && s->model->ntrain_measures > 0);
  if (measures && outputs) status = evaluate_batch(s, l, &e);
  for (int i = 0; !status && outputs && nth_result(s, kind, i, &r); i++)
    if (outputs[i]) status = read_result(s, l, &e, &r, outputs[i]);
  return status;
}

enum dgc_status dgc_run(struct dgc_session *s, const char *entry, int64_t rows, const void *const *inputs,
                        void *const *outputs) {
  CALL(s, run_batch(s, entry, 0, rows, inputs, outputs));
}

enum dgc_status dgc_run_from(struct dgc_session *s, const char *entry, int64_t first, int64_t rows,
                             const void *const *inputs, void *const *outputs) {
  CALL(s, run_batch(s, entry, first, rows, inputs, outputs));
}

/* Single batches, of the caller's own. */
#include "session/evaluate.h"
#include "session/run.h"

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

static const struct node *source_input(const struct graph *g, int index) {
  for (uint32_t i = 0; g && i < g->count; i++)
    if (g->nodes[i]->op == OP_input && index-- == 0) return g->nodes[i];
  return NULL;
}

/* --- what a batch gives --- */

enum part { VALUE, SUM, COUNT };

/* One of the things that dgc_output lists: an output of the source graph, or a half of a metric. */
struct result {
  const struct output *output, *by; /* a metric's own divisor: NULL if it is a number of elements, or none */
  enum part part;
};

/* First the values, then, where they are asked for, the sums and counts of those that are divided. */
static bool nth_result(const struct dgc_session *s, const struct graph *g, int index, struct result *out) {
  for (int halves = 0; g && halves <= s->options.sums; halves++)
    for (int i = 0; i < g->noutputs; i++) {
      const struct output *o = &g->outputs[i], *by = metric_divisor(g, o);
      if (o->role == OUTPUT_UPDATE || o->role == OUTPUT_COUNT) continue;
      if (halves && !by && (o->role != OUTPUT_METRIC || !o->count)) continue;
      for (enum part part = halves ? SUM : VALUE; part <= (halves ? COUNT : VALUE); part++) {
        *out = (struct result){o, by, part};
        if (index-- == 0) return true;
      }
    }
  return false;
}

/* What a metric of this batch is divided by; 0: nothing. */
static enum dgc_status read_count(struct dgc_session *s, const struct loaded *l, const struct result *r,
                                  double *out) {
  if (r->by) return output_number(s, l, plan_output(l->plan, r->by->role, r->by->name), out);
  int64_t count = l->plan->outputs[plan_output(l->plan, r->output->role, r->output->name)].count;
  *out = (double)(count < 0 ? -count * l->batch : count);
  return DGC_OK;
}

static enum dgc_status read_result(struct dgc_session *s, const struct loaded *l, const struct result *r,
                                   void *out) {
  int output = plan_output(l->plan, r->output->role, r->output->name);
  if (r->part == COUNT) return read_count(s, l, r, out);
  if (r->part == SUM || r->output->role != OUTPUT_METRIC)
    return exec_read(l->exec, output, out) ? DGC_OK : session_device_failed(s);
  double sum, count;
  enum dgc_status status = output_number(s, l, output, &sum);
  if (!status) status = read_count(s, l, r, &count);
  if (status) return status;
  double value = metric_value(sum, count, r->by != NULL);
  if (l->plan->outputs[output].type.dtype == DT_F64)
    memcpy(out, &value, sizeof value);
  else
    memcpy(out, &(float){(float)value}, sizeof(float));
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
  const char *name = arena_printf(s->call, "%s.%s", r->output->name, r->part == SUM ? "sum" : "count");
  for (int i = 0; i < s->part_names.count; i++)
    if (strcmp(s->part_names.items[i], name) == 0) return s->part_names.items[i];
  list_append(s->arena, &s->part_names, name);
  return s->part_names.items[s->part_names.count - 1];
}

static enum dgc_status describe_part(struct dgc_session *s, const struct result *r, struct dgc_tensor *out) {
  static const struct type number = {.dtype = DT_F64};
  tensor_describe(part_name(s, r), r->part == COUNT ? &number : &r->output->node->type, out);
  return DGC_OK;
}

static enum dgc_status describe_part_call(struct dgc_session *s, const struct result *r,
                                          struct dgc_tensor *out) {
  CALL(s, describe_part(s, r, out));
}

bool dgc_output(struct dgc_session *s, const char *entry, int index, struct dgc_tensor *out) {
  enum entry_kind kind;
  struct result r;
  if (!nth_result(s, find_entry(s, entry, &kind), index, &r)) return false;
  if (r.part != VALUE) return describe_part_call(s, &r, out) == DGC_OK;
  tensor_describe(r.output->name, &r.output->node->type, out);
  return true;
}

/* --- runs --- */

/* The caller's numbers must be what the model can use, as those in files. */
static enum dgc_status check_range(struct dgc_session *s, const char *name, int64_t rows, const void *data) {
  for (int i = 0; i < s->model->ninputs; i++) {
    const struct model_input *in = &s->model->inputs[i];
    if (in->low > in->high || strcmp(in->name, name) != 0) continue;
    struct type row = type_make((enum dtype)in->type.dtype, in->type.rank - 1, in->type.dim + 1);
    int64_t wrong = integers_outside((enum dtype)row.dtype, data, rows * type_count(&row), in->low, in->high);
    if (wrong < 0) continue;
    return session_fail(s, DGC_INPUT, "row %lld of input '%s': its values must be from %lld to %lld",
                        (long long)(wrong / type_count(&row)), name, (long long)in->low, (long long)in->high);
  }
  return DGC_OK;
}

static enum dgc_status run_batch(struct dgc_session *s, const char *entry, int64_t rows,
                                 const void *const *inputs, void *const *outputs) {
  enum entry_kind kind;
  struct loaded *l;
  enum dgc_status status = entry_find(s, entry, &kind);
  if (!status && rows < 1) status = session_fail(s, DGC_USAGE, "a batch of %lld rows", (long long)rows);
  if (!status) status = session_ready(s, kind);
  if (!status) status = session_plan(s, kind, rows, &l);
  if (status) return status;
  const struct graph *g = entry_source(s, kind);
  const struct node *n;
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
  for (int i = 0; !status && outputs && nth_result(s, g, i, &r); i++)
    if (outputs[i]) status = read_result(s, l, &r, outputs[i]);
  return status;
}

enum dgc_status dgc_run(struct dgc_session *s, const char *entry, int64_t rows, const void *const *inputs,
                        void *const *outputs) {
  CALL(s, run_batch(s, entry, rows, inputs, outputs));
}

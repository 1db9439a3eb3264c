/* Single batches, of the caller's own. */
#include "dgc_internal.h"

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

static const struct output *source_output(const struct graph *g, int index) {
  for (int i = 0; g && i < g->noutputs; i++)
    if (g->outputs[i].role != OUTPUT_UPDATE && index-- == 0) return &g->outputs[i];
  return NULL;
}

bool dgc_input(struct dgc_session *s, const char *entry, int index, struct dgc_tensor *out) {
  enum entry_kind kind;
  const struct node *n = source_input(find_entry(s, entry, &kind), index);
  if (n) tensor_describe(n->name, &n->type, out);
  return n != NULL;
}

bool dgc_output(struct dgc_session *s, const char *entry, int index, struct dgc_tensor *out) {
  enum entry_kind kind;
  const struct output *o = source_output(find_entry(s, entry, &kind), index);
  if (o) tensor_describe(o->name, &o->node->type, out);
  return o != NULL;
}

static int plan_output(const struct plan *p, const struct output *o) {
  for (int i = 0; i < p->noutputs; i++)
    if (p->outputs[i].role == o->role && strcmp(p->outputs[i].name, o->name) == 0) return i;
  return -1;
}

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
  const struct output *o;
  for (int i = 0; outputs && (o = source_output(g, i)); i++) {
    int output = plan_output(l->plan, o);
    if (outputs[i] && output >= 0 && !exec_read(l->exec, output, outputs[i])) return session_device_failed(s);
  }
  return DGC_OK;
}

enum dgc_status dgc_run(struct dgc_session *s, const char *entry, int64_t rows, const void *const *inputs,
                        void *const *outputs) {
  CALL(s, run_batch(s, entry, rows, inputs, outputs));
}

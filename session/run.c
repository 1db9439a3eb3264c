/* SPDX-License-Identifier: Apache-2.0 */
/* Running: a session's plans, first values and what plans give. */
#include "session/run.h"

#include "ir/ops/op_id.h"
#include "ir/strategies.h"
#include "session/agree.h"
#include "session/compile.h"
#include "session/module.h"
#include "session/options.h"
#include "session/settle.h"
#include "session/state/checkpoints.h"
#include "session/state/data.h"
#include "session/state/evaluator.h"
#include "session/state/running.h"
#include "session/state/settlement.h"
#include "session/state/tracing.h"

#include "passes/pass.h"
#include "planner/planner.h"
#include "runtime/compiled.h"
#include "runtime/model_variable.h"
#include "runtime/mpi/transport.h"

#include <string.h>

/* --- plans --- */

/* A plan of steps, for devices that this program drives; of a module, for those of another compiler. Initial values
 * are the host's, so that a module has nothing to do for them. */
static struct plan *make_plan(struct dgc_session *s, struct loaded *l, const struct graph *g) {
  if (!session_runs_modules(s))
    return (s->transport ? plan_build_processes : plan_build)(l->arena, g, &s->diags);
  if (l->kind == ENTRY_INIT) return module_variables(s, l->arena, g);
  return module_plan(s, l->arena, g, session_batch(s) - 1);
}

static enum dgc_status build_plan(struct dgc_session *s, struct loaded *l) {
  const char *last = session_runs_modules(s) ? module_pass : NULL;
  struct graph *g = (s->transport ? session_part : session_graph)(s, l->arena, l->kind, l->batch, last);
  if (!g) return session_blame(s);
  struct plan *p = make_plan(s, l, g);
  if (!p) return session_blame(s);
#ifndef DGC_DEBUG
  if (s->options.verify_each)
#endif
    if (!plan_verify(p, &s->diags)) return DGC_RUNTIME;
  l->graph = g;
  l->plan = p;
  return DGC_OK;
}

/* The entry for this batch size, planned if it is not there yet; it stands first then. */
static enum dgc_status find_plan(struct dgc_session *s, enum entry_kind kind, int64_t batch,
                                 struct loaded **out) {
  for (struct loaded **p = &s->running->plans; *p; p = &(*p)->next) {
    struct loaded *l = *p;
    if (l->kind != kind || l->batch != batch || l->source != entry_source(s, kind)) continue;
    *p = l->next;
    l->next = s->running->plans;
    s->running->plans = *out = l;
    return DGC_OK;
  }
  struct arena *a = s->building = arena_create();
  struct loaded *l = arena_new(a, struct loaded);
  *l = (struct loaded){.kind = kind, .batch = batch, .source = entry_source(s, kind), .arena = a};
  enum dgc_status status = build_plan(s, l);
  s->building = NULL;
  if (status) {
    arena_destroy(a);
    return status;
  }
  l->next = s->running->plans;
  s->running->plans = *out = l;
  return DGC_OK;
}

static enum dgc_status load_plan(struct dgc_session *s, struct loaded *l) {
  const struct plan *p = l->plan;
  /* Where each process has planned its own part, what that comes from is the same. */
  const struct graph *same = p->part ? session_source(s, s->call, l->kind, l->batch) : l->graph;
  enum dgc_status status = agree_on_plan(s, same, p);
  if (status) return status;
  struct exec *e = exec_load(p, s->running->engines, s->values->store, s->running->workers, &s->diags);
  if (!e) return DGC_RUNTIME;
  if (exec_set_limit(e, (int)s->options.timeout, &s->diags)) {
    l->exec = e;
    return DGC_OK;
  }
  exec_unload(e);
  return DGC_RUNTIME;
}

enum dgc_status session_plan(struct dgc_session *s, enum entry_kind kind, int64_t batch,
                             struct loaded **out) {
  if (kind == ENTRY_TRAIN && s->settlement->free)
    return session_fail(s, DGC_USAGE, "staleness: free is for dgc train over files, not for single steps");
  if (!s->values->store || s->values->moves) { /* options were changed while it was running */
    enum dgc_status status = session_ready(s, kind);
    if (status) return status;
  }
  enum dgc_status status = find_plan(s, kind, batch, out);
  return status || (*out)->exec ? status : load_plan(s, *out);
}

enum dgc_status session_foresee(struct dgc_session *s, enum entry_kind kind) {
  enum entry_kind kinds[] = {ENTRY_INIT, kind};
  enum dgc_status status = session_need(s, kind);
  if (!status) status = session_open(s);
  if (s->values->initialised || s->settlement->free || !entry_there(s, ENTRY_INIT)) return status;
  for (int i = 0; !status && i < 2; i++) {
    struct loaded *l;
    status = find_plan(s, kinds[i], session_batch(s), &l);
    if (!status) foresee_kernels(s->running->engines, l->plan);
  }
  return status;
}

enum dgc_status session_run_exec(struct dgc_session *s, const struct plan_run *r) {
  if (s->tracing->trace ? s->tracing->run(s, r) : exec_run(r->exec)) return DGC_OK;
  exec_status(r->exec, &s->diags);
  return DGC_RUNTIME;
}

enum dgc_status session_run(struct dgc_session *s, struct loaded *l) {
  const struct plan_run r = {.exec = l->exec,
                             .plan = l->plan,
                             .arena = l->arena,
                             .traced = &l->traced,
                             .name = entry_names[l->kind],
                             .step = s->position.step + (l->kind == ENTRY_TRAIN),
                             .rows = l->batch,
                             .worker = -1};
  return session_run_exec(s, &r);
}

static void mark_filled(struct dgc_session *s) {
  for (int i = 0; i < store_count(s->values->store); i++) store_at(s->values->store, i)->filled = true;
}

/* --- first values --- */

/* The same model with the same towers on the host alone. */
static struct dgc_session *create_host(const struct dgc_session *s) {
  struct dgc_session *host = session_create();
  struct options *o = &host->options;
  *o = s->options;
  options_drop_strategy(o);
  o->devices = "cpu:0";
  o->backend = NULL;
  o->strategy = strategy_default(DEFAULT_FOR_ONE_DEVICE)->name;
  o->towers = s->settlement->config.towers;
  o->soft_placement = true; /* the model may name the others */
  o->batch_is = NULL;
  o->batch = session_batch(s);
  return host;
}

/* In a call of its own. */
static enum dgc_status initialise(struct dgc_session *host, const struct source *source, struct kept *out) {
  struct model_variable *all;
  enum dgc_status status = session_load(host, source);
  if (!status) status = session_ready(host, ENTRY_INIT);
  if (status) return status;
  out->arena = arena_create();
  int count = store_model_variables(host->values->store, out->arena, &all);
  out->values = model_variables_save(host->values->store, out->arena, all, count);
  return out->values ? DGC_OK : session_device_failed(host);
}

static enum dgc_status initialise_call(struct dgc_session *host, const struct source *source,
                                       struct kept *out) {
  CALL(host, initialise(host, source, out));
}

/* Gives variables the values they had before they moved. */
static enum dgc_status restore_kept(struct dgc_session *s) {
  struct model_variable *all;
  int count = store_model_variables(s->values->store, s->call, &all);
  for (int i = 0; i < count; i++) {
    if (!checkpoint_find(s->values->kept.values, all[i].name)) continue;
    if (!model_variable_restore(s->values->store, &all[i], s->values->kept.values))
      return session_device_failed(s);
  }
  session_forget_kept(s);
  return DGC_OK;
}

/* Where a plugin's compiler runs the model, first values are those that the host gives to any other devices. */
static enum dgc_status first_values(struct dgc_session *s) {
  if (s->values->kept.values || !session_runs_modules(s)) return DGC_OK;
  struct dgc_session *host = create_host(s);
  enum dgc_status status = initialise_call(host, s->source, &s->values->kept);
  if (status) {
    session_fail(s, status, "first values: %s", host->message);
    session_forget_kept(s);
  }
  dgc_destroy(host);
  return status;
}

enum dgc_status session_init(struct dgc_session *s) {
  if (s->values->initialised) return DGC_OK;
  if (entry_there(s, ENTRY_INIT)) {
    struct loaded *l;
    enum dgc_status status = first_values(s);
    if (!status) status = session_plan(s, ENTRY_INIT, session_batch(s), &l);
    if (status) return status;
    status = s->values->kept.values ? restore_kept(s) : session_run(s, l);
    if (status) return status;
    mark_filled(s);
    if (!store_broadcast(s->values->store)) return session_device_failed(s);
  }
  s->values->initialised = true;
  return DGC_OK;
}

/* What training keeps begins anew where a checkpoint does not hold it; what evaluation or prediction reads of that, as
 * an average in the place of its variable, has to be there, or made by a training that goes on. */
static enum dgc_status check_values(struct dgc_session *s, enum entry_kind kind) {
  const struct graph *g = entry_source(s, kind);
  const char *of = NULL;
  bool trains = s->data->trained && !s->evaluator->here;
  if ((kind != ENTRY_EVAL && kind != ENTRY_PREDICT) || trains || s->position.step != s->restored->step)
    return DGC_OK;
  for (int i = 0; i < s->restored->anew.count; i++) {
    const struct node *n = graph_find(g, s->restored->anew.items[i]);
    const char *slot = node_is(n, OP_variable) ? node_string_or(n, ATTR_slot, NULL) : NULL;
    if (!slot) continue;
    session_fail(s, DGC_MISMATCH, "%s: variable %s of model %s is missing", s->restored->file, n->name,
                 s->model->name);
    of = slot;
  }
  if (!of) return DGC_OK;
  diag_help(&s->diags, LOC_NONE,
            "%s reads it in the place of %s: a training from this file, by --init-from or --resume, makes it",
            entry_names[kind], of);
  return DGC_MISMATCH;
}

enum dgc_status session_ready(struct dgc_session *s, enum entry_kind kind) {
  enum dgc_status status = session_need(s, kind);
  if (!status) status = check_values(s, kind);
  if (!status) status = session_open(s);
  if (!status) status = session_init(s);
  return status;
}

int plan_input(const struct plan *p, const char *name) {
  for (int i = 0; i < p->ninputs; i++)
    if (strcmp(p->inputs[i].name, name) == 0) return i;
  return -1;
}

/* The rows of the input that the node is, or looks into: from *first on, how many. Else -1. */
static int64_t rows_of(const struct node *n, const char *input, int64_t *first) {
  int64_t bytes = type_bytes(&n->type), begin = 0, offset;
  for (; node_is_view(n, &offset); n = n->inputs[0]) begin += offset;
  if (n->op != OP_input || !n->type.rank || strcmp(n->name, input) != 0) return -1;
  int64_t row = n->type.dim[0] ? type_bytes(&n->type) / n->type.dim[0] : 0;
  *first = row ? begin / row : 0;
  return row ? (begin + bytes + row - 1) / row - *first : 0;
}

bool reads_rows(const struct dgc_session *s, const struct loaded *l, const char *input, int64_t first,
                int64_t end) {
  for (uint32_t i = 0; i < l->graph->count; i++) {
    const struct node *n = l->graph->nodes[i];
    int64_t at, rows;
    bool moves = rows_of(n, input, &at) < 0; /* what looks into it moves nothing: its users do */
    if (!moves || plan_process(l->plan, n->device) != s->transport->rank) continue;
    for (int k = 0; k < n->ninputs; k++) {
      rows = rows_of(n->inputs[k], input, &at);
      if (rows > 0 && (at < first || at + rows > end)) return false;
    }
  }
  return true;
}

enum dgc_status session_device_failed(struct dgc_session *s) {
  engines_status(s->running->engines, &s->diags);
  return DGC_RUNTIME;
}

enum dgc_status output_read_end(struct dgc_session *s, const struct loaded *l, int output,
                                const struct deferred_read *r, double *out) {
  union {
    float f32;
    double f64;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
  } v;
  if (!exec_read_end(l->exec, r, &v)) return session_device_failed(s);
  switch ((enum dtype)l->plan->outputs[output].type.dtype) {
  case DT_F32: *out = (double)v.f32; break;
  case DT_F64: *out = v.f64; break;
  case DT_I32: *out = v.i32; break;
  case DT_I64: *out = (double)v.i64; break;
  case DT_U8:
  case DT_BOOL: *out = v.u8; break;
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return DGC_OK;
}

enum dgc_status output_number(struct dgc_session *s, const struct loaded *l, int output, double *out) {
  struct deferred_read r;
  if (!exec_read_begin(l->exec, output, &r)) return session_device_failed(s);
  return output_read_end(s, l, output, &r, out);
}

void tensor_describe(const char *name, const struct type *t, struct dgc_tensor *out) {
  *out = (struct dgc_tensor){.name = name, .dtype = dtype_name((enum dtype)t->dtype), .rank = t->rank};
  for (int i = 0; i < t->rank; i++) out->shape[i] = t->dim[i];
}

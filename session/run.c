/* SPDX-License-Identifier: Apache-2.0 */
/* Running: the devices of a session, its plans and its variables. */
#include "session/run.h"

#include "ir/ops/op_id.h"
#include "ir/strategies.h"
#include "session/agree.h"
#include "session/cluster.h"
#include "session/compile.h"
#include "session/devices.h"
#include "session/model.h"
#include "session/module.h"
#include "session/options.h"
#include "session/settle.h"
#include "session/state/checkpoints.h"
#include "session/state/data.h"
#include "session/state/evaluator.h"
#include "session/state/running.h"
#include "session/state/settlement.h"
#include "session/state/tracing.h"
#include "session/state/values.h"

#include "passes/pass.h"
#include "planner/planner.h"
#include "runtime/checkpoint.h"
#include "runtime/checkpoint_writer.h"
#include "runtime/compiled.h"
#include "runtime/data/pipe.h"
#include "runtime/devices.h"
#include "runtime/model_variable.h"
#include "runtime/mpi/transport.h"

#include <string.h>
#include <time.h>

/* --- devices --- */

/* Processes of this machine, which share its cores. */
static int processes_here(const struct transport *t) {
  int count = 0;
  if (!t || !t->host) return 1;
  const char *own = t->host(t, t->rank);
  for (int i = 0; i < t->size; i++) count += strcmp(t->host(t, i), own) == 0;
  return count < 1 ? 1 : count;
}

/* All cores, of which each process of this machine has its share; one where devices work behind the host alone. */
static int useful_threads(const struct dgc_session *s) {
  bool hosts = false;
  for (int i = 0; i < s->running->engines->target.ndevices; i++)
    hosts |= engines_on_host(s->running->engines, i);
  if (!hosts) return 1;
  if (s->options.threads) return (int)s->options.threads;
  int share = cpu_cores() / processes_here(s->transport);
  return share < 1 ? 1 : share;
}

/* Notes in the target which GPUs a stand-in for the driver simulates. */
static void note_simulated(struct dgc_session *s) {
  for (int i = 0; i < s->running->engines->count; i++) {
    const struct backend *b = s->running->engines->all[i].backend;
    struct device_info *info = NULL;
    const char *why_none;
    int count = b->list && !b->runs_modules ? b->list(s->call, NULL, &info, &why_none) : 0;
    for (int d = 0; d < s->settlement->target.ndevices; d++)
      for (int k = 0; k < count && strcmp(s->settlement->target.devices[d].name.kind, b->kind) == 0; k++)
        if (info[k].index == s->settlement->target.devices[d].name.index)
          s->settlement->target.devices[d].simulated = info[k].simulated;
  }
}

static bool same_devices(const struct target *a, const struct target *b) {
  for (int i = 0; i < a->ndevices && i < b->ndevices; i++)
    if (strcmp(a->devices[i].text, b->devices[i].text) != 0) return false;
  return a->ndevices == b->ndevices;
}

/* Options that they depend on have changed. */
static void drop_plans(struct dgc_session *s) {
  while (s->running->plans) {
    struct loaded *l = s->running->plans;
    s->running->plans = l->next;
    exec_unload(l->exec);
    arena_destroy(l->arena);
  }
}

static void forget_kept(struct dgc_session *s) {
  arena_destroy(s->values->kept.arena);
  s->values->kept = (struct kept){0};
}

/* Keeps the values of the variables, if they hold some. */
static enum dgc_status keep_values(struct dgc_session *s) {
  struct model_variable *all;
  if (!s->values->initialised) return DGC_OK;
  forget_kept(s);
  struct arena *a = s->values->kept.arena = arena_create();
  int count = store_model_variables(s->values->store, a, &all);
  s->values->kept.values = model_variables_save(s->values->store, a, all, count);
  return s->values->kept.values ? DGC_OK : session_device_failed(s);
}

enum dgc_status session_set_aside(struct dgc_session *s, struct kept *out) {
  enum dgc_status status = keep_values(s);
  if (status) return status;
  s->values->initialised = false;
  *out = s->values->kept;
  s->values->kept = (struct kept){0};
  return DGC_OK;
}

void session_put_back(struct dgc_session *s, const struct kept *values) {
  forget_kept(s);
  s->values->kept = *values;
  s->values->initialised = false;
}

/* Plans and device memory go; the values of the variables are kept until there is a place for them. */
static enum dgc_status move(struct dgc_session *s) {
  drop_plans(s);
  enum dgc_status status = keep_values(s);
  if (status) return status;
  s->values->initialised = s->values->moves = false;
  store_destroy(s->values->store);
  s->values->store = NULL;
  return DGC_OK;
}

/* Tasks that are all run by this process are on one machine. NULL: no card is two tasks'. */
static const char *shared_card(struct dgc_session *s) {
  const struct target *t = &s->settlement->target;
  for (int i = 0; !s->transport && i < t->ndevices; i++)
    for (int k = 0; k < i; k++) {
      const struct device *a = &t->devices[k], *b = &t->devices[i];
      if (strcmp(a->name.kind, "gpu") == 0 && strcmp(b->name.kind, "gpu") == 0 &&
          a->name.index == b->name.index)
        return arena_printf(s->call, "NCCL takes each card once, and %s and %s are one", a->text, b->text);
    }
  return NULL;
}

/* Where devices are to make sums together and their backend cannot, the plans that will run are other ones: those of
 * all processes. */
static enum dgc_status settle_nccl(struct dgc_session *s) {
  const char *how = s->settlement->config.cross_device;
  bool wanted = how && strcmp(how, "nccl") == 0 && s->settlement->config.towers > 1;
  const char *why = wanted ? shared_card(s) : NULL;
  for (int i = 0; wanted && i < s->running->engines->count && !why; i++) {
    const struct opened *o = &s->running->engines->all[i];
    why = o->backend->no_rendezvous ? o->backend->no_rendezvous(o->self) : NULL;
  }
  unsigned char cannot =
      why != NULL; /* all ask, whatever they want: that they want the same is looked at later */
  if (s->transport && !transport_any(s->transport, &cannot)) return session_unreached(s);
  if (!cannot || !wanted) return DGC_OK;
  s->settlement->config.cross_device = "hierarchical_copy";
  diag_warning(&s->diags, s->settlement->config.asked.cross_device, "%s: %s is used",
               why ? why : "a process has no NCCL", s->settlement->config.cross_device);
  return DGC_OK;
}

/* One task of several, in a process that would be all of them. */
static enum dgc_status refuse_task(struct dgc_session *s, const struct cluster *c, int tasks) {
  session_fail(s, DGC_USAGE, "%s: %s is one of %d tasks, and this is the only process", c->task_from, c->task,
               tasks);
  diag_help(&s->diags, LOC_NONE,
            "start all of them by mpirun -n %d or dgc launch -n %d, or leave out --task: then this process "
            "runs all of them",
            tasks, tasks);
  return DGC_USAGE;
}

/* Hosts are for processes, which somebody has to start; numbered tasks are one process by what is said of them, unless
 * that says which of them this one is. */
static enum dgc_status refuse_alone(struct dgc_session *s) {
  struct cluster c;
  enum dgc_status status = session_cluster(s, &c);
  if (status || !c.spec) return status;
  const char *numbered = cluster_numbered(s->call, c.spec, &s->diags);
  int *of = arena_new_array(s->call, (size_t)s->settlement->target.ndevices, int);
  int tasks = target_processes(&s->settlement->target, of);
  if (!numbered) return c.task && tasks > 1 ? refuse_task(s, &c, tasks) : DGC_OK;
  /* TF_CONFIG of a machine alone, as launchers write it for a cluster of one. */
  if (!s->options.cluster && tasks == 1) return DGC_OK;
  session_fail(s, DGC_USAGE, "cluster: '%s' of %s names hosts, and this is the only process", c.spec, c.from);
  diag_help(
      &s->diags, LOC_NONE,
      "start a process for each task, as mpirun or dgc launch do, or give their numbers to run all of them "
      "in this one: --cluster \"%s\"",
      numbered);
  return DGC_USAGE;
}

/* Finds the other processes. One that trains with an evaluator alone has none to train with. */
static enum dgc_status meet(struct dgc_session *s) {
  int rank;
  if (transport_launched(&rank) == 1 || s->transport || s->evaluator->transport) return DGC_OK;
  const struct transport *t = transport_open(s->evaluator->here ? TASK_EVALUATOR : s->settlement->task,
                                             (int)s->options.timeout, &s->diags);
  if (!t) return DGC_RUNTIME;
  if (t->evaluators) s->evaluator->transport = t;
  if (s->evaluator->here) return DGC_OK;
  if (t->evaluators != s->evaluator->tasks) {
    session_fail(s, DGC_USAGE, "cluster: %d process%s an evaluator, and the cluster has %s", t->evaluators,
                 t->evaluators == 1 ? " is" : "es are", s->evaluator->tasks ? "one" : "none");
    diag_help(&s->diags, LOC_NONE, "--cluster \"worker=2;evaluator=1\" counts it as well");
    return DGC_USAGE;
  }
  if (t->size == 1) return DGC_OK;
  s->transport = t;
  return agree_on_build(s);
}

/* Where tasks turn out to run on several hosts, these are a level of sums, unless the cluster names its own: what
 * follows from that is settled again. */
static enum dgc_status settle_hosts(struct dgc_session *s) {
  const char *hosts = s->transport ? session_hosts(s, &s->settlement->listed, s->transport) : NULL;
  enum dgc_status status = DGC_OK;
  if (hosts && !s->settlement->hosts) {
    s->settlement->hosts = hosts;
    s->settlement->done = false;
    status = session_settle(s);
  }
  if (s->settlement->why_sums && s->transport && session_is_first(s))
    diag_note(&s->diags, LOC_NONE, "%s", s->settlement->why_sums);
  s->settlement->why_sums = NULL;
  return status;
}

static enum dgc_status settle_bits(struct dgc_session *s) {
  bool portable = options_portable(&s->options);
  int device = engines_portable_bits(s->running->engines, portable);
  if (device < 0) return DGC_OK;
  session_fail(s, DGC_USAGE, "bits: %s adds up in an order of its own",
               s->settlement->target.devices[device].text);
  diag_help(&s->diags, LOC_NONE, "--bits portable is for devices of the CPU alone");
  return DGC_USAGE;
}

enum dgc_status session_open(struct dgc_session *s) {
  const struct backend *chosen;
  enum dgc_status status = s->values->moves ? move(s) : DGC_OK;
  if (s->values->store || status) return status;
  status = session_settle(s);
  int rank;
  if (!status && transport_launched(&rank) == 1) status = refuse_alone(s);
  if (!status) status = session_backend(s, &chosen);
  if (status) return status;
  if (s->running->engines && !same_devices(&s->running->engines->target, &s->settlement->target)) {
    engines_close(s->running->engines);
    s->running->engines = NULL;
  }
  status = meet(s);
  if (!status) status = settle_hosts(s);
  if (!status) status = session_check_modules(s);
  if (status) return status;
  session_starts_here(s);
  if (!s->running->engines)
    s->running->engines = engines_open_task(&s->settlement->target, (const struct backend *[]){chosen, NULL},
                                            s->transport, &s->diags);
  if (!s->running->engines) return DGC_RUNTIME;
  note_simulated(s);
  status = tell_simulated(s);
  if (status) return status;
  engines_allow_tf32(s->running->engines, s->options.tf32);
  status = settle_bits(s);
  if (status) return status;
  engines_limit(s->running->engines, (int)s->options.timeout);
  if (!s->running->workers) s->running->workers = workers_create(useful_threads(s), &s->diags);
  if (!s->running->workers) return DGC_RUNTIME;
  status = settle_nccl(s);
  if (status) return status;
  s->values->store = store_create(s->running->engines);
  return DGC_OK;
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
  forget_kept(s);
  return DGC_OK;
}

/* The evaluator is told what was saved last; it stays until it knows that the training has ended, as MPI has it. */
static void part(struct dgc_session *s) {
  static const struct timespec nap = {.tv_nsec = 10000000};
  if (!s->evaluator->transport || transport_has_failed()) return;
  if (!s->evaluator->here && s->evaluator->transport->rank == 0)
    s->evaluator->transport->tell_evaluator(s->saving->step);
  while (s->evaluator->here && !session_training_ended(s)) nanosleep(&nap, NULL);
}

bool session_training_ended(struct dgc_session *s) {
  struct watched *w = &s->evaluator->watched;
  w->told = w->told || (s->evaluator->transport && s->evaluator->transport->told_evaluator(&w->saved));
  return w->told;
}

void session_close(struct dgc_session *s) {
  part(s);
  checkpoint_writer_destroy(s->saving->writer);
  forget_kept(s);
  drop_plans(s);
  store_destroy(s->values->store);
  workers_destroy(s->running->workers);
  engines_close(s->running->engines);
  pipes_close(s->pipes);
}

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

/* Where a plugin's compiler runs the model, first values are those that the host gives to any other devices. */
static enum dgc_status first_values(struct dgc_session *s) {
  if (s->values->kept.values || !session_runs_modules(s)) return DGC_OK;
  struct dgc_session *host = create_host(s);
  enum dgc_status status = initialise_call(host, s->source, &s->values->kept);
  if (status) {
    session_fail(s, status, "first values: %s", host->message);
    forget_kept(s);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing: the devices of a session, and the other processes. Where devices change, plans and memory go,
 * and the values of the variables are kept until there is a place for them. */
#include "session/run.h"

#include "session/agree.h"
#include "session/cluster.h"
#include "session/devices.h"
#include "session/module.h"
#include "session/options.h"
#include "session/settle.h"
#include "session/state/checkpoints.h"
#include "session/state/evaluator.h"
#include "session/state/running.h"
#include "session/state/settlement.h"

#include "runtime/checkpoint_writer.h"
#include "runtime/data/pipe.h"
#include "runtime/model_variable.h"
#include "runtime/mpi/transport.h"

#include <string.h>
#include <time.h>

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

void session_forget_kept(struct dgc_session *s) {
  arena_destroy(s->values->kept.arena);
  s->values->kept = (struct kept){0};
}

/* Keeps the values of the variables, if they hold some. */
static enum dgc_status keep_values(struct dgc_session *s) {
  struct model_variable *all;
  if (!s->values->initialised) return DGC_OK;
  session_forget_kept(s);
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
  session_forget_kept(s);
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
  session_forget_kept(s);
  drop_plans(s);
  store_destroy(s->values->store);
  workers_destroy(s->running->workers);
  engines_close(s->running->engines);
  pipes_close(s->pipes);
}

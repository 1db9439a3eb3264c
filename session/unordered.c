/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's step is a plan for that worker and the parameter servers, with the batch for itself. Workers and
 * servers run it as ever; at a server its messages go through a mailbox (runtime/mpi/mailbox.h), and who does what
 * when is runtime/mpi/unordered.h's. All go through the batches in one order; a worker runs those that it is given,
 * and a server looks into them where an update needs an input. */
#include "session/unordered.h"

#include "session/batch_run.h"
#include "session/data.h"
#include "session/settle.h"
#include "session/state/settlement.h"
#include "session/state/tracing.h"
#include "session/trace.h"
#include "session/worker.h"

#include "base/clock.h"
#include "ir/plan/stages.h"
#include "runtime/mpi/mailbox.h"
#include "runtime/mpi/transport.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Plans for a whole batch, and for the last one of an epoch. */
enum { SIZES = 2 };

struct step_of_worker {
  struct worker_step sizes[SIZES];
  struct mailbox
      *boxes[SIZES]; /* of a server; and what it needs of the batch of the step that the worker is in */
  struct batch batch;
  struct tensor *columns;
  bool busy;             /* it is in a step */
  int64_t number;        /* of the step, counted from 1 */
  uint8_t *asked[SIZES]; /* what it has asked for in the step is done */
};

struct unordered_training {
  struct dgc_session *s;
  const struct dataset *data;
  struct loader *loader;
  struct unordered_hooks hooks;
  void *training;
  struct unordered *free;
  struct unordered_roles roles;
  struct step_of_worker *steps; /* by worker */
  int self;                     /* the worker that this process is; -1: a server */
  int64_t rows[SIZES];
  enum dgc_status status;
};

static int number_of(const int *list, int count, int process) {
  for (int i = 0; i < count; i++)
    if (list[i] == process) return i;
  return -1;
}

static void find_roles(struct dgc_session *s, struct unordered_roles *out) {
  size_t n = (size_t)s->settlement->target.ndevices;
  int *workers = arena_new_array(s->call, n, int), *servers = arena_new_array(s->call, n, int);
  out->nworkers = session_workers(s, workers, servers, &out->nservers);
  out->workers = workers;
  out->servers = servers;
}

enum dgc_status session_unordered_allowed(struct dgc_session *s) {
  const struct options *o = &s->options;
  const char *shard = o->auto_shard;
  if (!s->transport) {
    session_fail(s, DGC_USAGE, "staleness: free is for tasks that are processes of their own");
    diag_help(&s->diags, LOC_NONE,
              "as mpirun -n 3 dgc train MODEL --cluster \"worker=2;ps=1\" --staleness free; in one process "
              "the order is fixed: --staleness N");
    return DGC_USAGE;
  }
  if (!shard || strcmp(shard, "data") == 0) return DGC_OK;
  session_fail(s, DGC_USAGE,
               "auto-shard: with staleness free workers take batches as they come, and none has rows "
               "or files of its own");
  diag_help(&s->diags, LOC_NONE, "leave out --auto-shard %s", shard);
  return DGC_USAGE;
}

void session_unordered_loader(struct dgc_session *s, struct loader_options *o) {
  struct unordered_roles roles;
  find_roles(s, &roles);
  bool all = roles.nworkers == 1 && roles.workers[0] == s->transport->rank;
  o->towers = !all; /* of one tower none is this process's: rows are read when they are asked for */
}

/* --- acts --- */

static bool fails(struct unordered_training *f, enum dgc_status status) {
  if (status) f->status = status;
  return status != DGC_OK;
}

static int size_of(const struct unordered_training *f, const struct batch *b) {
  return b->rows != f->rows[0];
}

/* The batch of a step, in the order of steps; those between are others'. NULL after an error. */
static const struct batch *batch_of(struct unordered_training *f, int64_t step) {
  const struct position *p = &f->s->position;
  const struct batch *b;
  uint64_t begin = f->s->tracing->trace ? clock_ns() : 0;
  while (loader_next(f->loader, &b, &f->s->diags) == LOADER_BATCH) {
    if (b->epoch == p->epoch && b->index == p->index + step) {
      if (begin) trace_span(f->s, "input", begin);
      return b;
    }
    loader_release(f->loader, b);
  }
  f->status = session_unread(f->s);
  return NULL;
}

static enum dgc_status add_losses(const struct unordered_training *f, const struct loaded *l, int64_t rows,
                                  struct unordered_report *out) {
  for (int i = 0; i < l->plan->noutputs; i++) {
    if (l->plan->outputs[i].role != OUTPUT_LOSS) continue;
    double value;
    enum dgc_status status = output_number(f->s, l, i, &value);
    if (status) return status;
    out->loss += value * (double)rows;
    if (isfinite(value) || f->s->options.allow_nan || out->odd) continue;
    out->odd = 1 + i;
    out->odd_value = value;
    out->wants = UNORDERED_ODD;
  }
  out->weight = (double)rows;
  return DGC_OK;
}

/* A run of the part that this process has in a worker's step. */
static enum dgc_status run_part(struct unordered_training *f, int worker, const struct plan_run *part,
                                const struct batch *b) {
  const struct loaded *l = f->steps[worker].sizes[size_of(f, b)].step;
  struct plan_run r = *part;
  r.arena = l->arena;
  r.step = f->steps[worker].number;
  r.rows = b->rows;
  r.worker = worker;
  return session_batch_run_on(f->s, l, &r, f->data, f->loader, b);
}

static bool do_step(void *user, int64_t step, const struct unordered_sum *sum, struct unordered_report *out) {
  struct unordered_training *f = user;
  transport_step(f->s->transport, f->s->position.step + step + 1);
  const struct batch *b = batch_of(f, step);
  if (!b || fails(f, f->hooks.told(f->training, b, sum))) return false;
  struct loaded *l = f->steps[f->self].sizes[size_of(f, b)].step;
  f->steps[f->self].number = f->s->position.step + step + 1;
  const struct plan_run whole = {.exec = l->exec, .plan = l->plan, .traced = &l->traced, .name = "train"};
  enum dgc_status status = run_part(f, f->self, &whole, b);
  if (!status) status = add_losses(f, l, b->rows, out);
  loader_release(f->loader, b);
  return !fails(f, status);
}

/* What an update needs of the batch is kept until the worker has done its step. */
static enum dgc_status keep_batch(struct unordered_training *f, struct step_of_worker *w,
                                  const struct batch *b) {
  struct dgc_session *s = f->s;
  const struct loaded *l = w->sizes[size_of(f, b)].step;
  w->batch = *b;
  w->batch.columns = w->columns;
  w->batch.first = 0;
  w->batch.end = b->rows;
  for (int i = 0; i < f->data->ncolumns; i++) {
    const struct tensor *from = &b->columns[i];
    struct tensor *to = &w->columns[i];
    to->type = from->type;
    if (reads_rows(s, l, f->data->columns[i].name, 0, 0)) continue; /* it reads none */
    if (!loader_complete(f->loader, b, i, &s->diags)) return session_unread(s);
    size_t row = (size_t)type_bytes(&f->data->columns[i].row);
    if (!to->data) to->data = arena_alloc(s->call, row * (size_t)f->rows[0]);
    memcpy(to->data, from->data, row * (size_t)b->rows);
  }
  return DGC_OK;
}

static bool begin(void *user, int worker, int64_t step) {
  struct unordered_training *f = user;
  struct step_of_worker *w = &f->steps[worker];
  const struct batch *b = batch_of(f, step);
  if (!b) return false;
  struct worker_step *size = &w->sizes[size_of(f, b)];
  mailbox_begin(w->boxes[size_of(f, b)]);
  memset(w->asked[size_of(f, b)], 0, (size_t)size->step->plan->nmessages);
  w->busy = true;
  w->number = f->s->position.step + step + 1;
  enum dgc_status status = keep_batch(f, w, b);
  loader_release(f->loader, b);
  const struct plan_run first = {
      .exec = size->first, .plan = &size->stages->first, .traced = &size->traced_first, .name = "begin"};
  if (!status) status = run_part(f, worker, &first, &w->batch);
  return !fails(f, status);
}

static bool apply(void *user, int worker, int64_t step) {
  struct unordered_training *f = user;
  struct step_of_worker *w = &f->steps[worker];
  int size = size_of(f, &w->batch);
  assert(w->batch.index == f->s->position.index + step);
  struct worker_step *part = &w->sizes[size];
  w->busy = false;
  const struct plan_run last = {
      .exec = part->step->exec, .plan = &part->stages->last, .traced = &part->step->traced, .name = "train"};
  enum dgc_status status = run_part(f, worker, &last, &w->batch);
  return !fails(f, status) && mailbox_end(w->boxes[size]);
}

/* Whether all is there that the stage receives. */
static bool is_there(const struct mailbox *m, const struct plan *stage) {
  for (int d = 0; d < stage->ndevices; d++)
    for (int i = 0; i < stage->devices[d].nsteps; i++) {
      const struct step *s = &stage->devices[d].steps[i];
      if (s->kind == STEP_RECEIVE && !mailbox_has(m, TAG_MESSAGES + s->message->tag)) return false;
    }
  return true;
}

/* What the worker asks for in its step: rows of a table by their numbers. */
static enum dgc_status answer(struct unordered_training *f, int worker) {
  struct step_of_worker *w = &f->steps[worker];
  int size = size_of(f, &w->batch);
  struct worker_step *step = &w->sizes[size];
  enum dgc_status status = DGC_OK;
  mailbox_poll(w->boxes[size]);
  for (int i = 0; !status && step->asked[i]; i++) {
    if (w->asked[size][i] || !is_there(w->boxes[size], &step->stages->asked[i])) continue;
    w->asked[size][i] = true;
    const struct plan_run asked = {.exec = step->asked[i],
                                   .plan = &step->stages->asked[i],
                                   .traced = &step->traced_asked[i],
                                   .name = "answer"};
    status = run_part(f, worker, &asked, &w->batch);
  }
  return status;
}

static bool poll(void *user) {
  struct unordered_training *f = user;
  enum dgc_status status = DGC_OK;
  for (int i = 0; !status && i < f->roles.nworkers; i++)
    if (f->steps[i].busy) status = answer(f, i);
  return !fails(f, status);
}

static unsigned wants(void *user) {
  struct unordered_training *f = user;
  return f->hooks.wants(f->training);
}

/* --- plans --- */

static enum dgc_status plan_step(struct unordered_training *f, int worker, int size) {
  struct dgc_session *s = f->s;
  struct step_of_worker *w = &f->steps[worker];
  const struct transport *t = f->self == worker ? s->transport : NULL;
  if (f->self < 0) {
    w->boxes[size] = mailbox_create(s->transport, f->roles.workers[worker]);
    if (!w->boxes[size]) return session_fail(s, DGC_RUNTIME, "out of memory");
    t = mailbox_transport(w->boxes[size]);
  }
  enum dgc_status status = worker_plan(s, worker, f->rows[size], t, &w->sizes[size]);
  if (!status)
    w->asked[size] = arena_new_array(s->call, (size_t)w->sizes[size].step->plan->nmessages, uint8_t);
  return status;
}

static enum dgc_status plan_all(struct unordered_training *f) {
  enum dgc_status status = DGC_OK;
  for (int i = 0; !status && i < f->roles.nworkers; i++)
    for (int k = 0; !status && k < SIZES; k++)
      if (k == 0 || f->rows[k] != f->rows[0]) status = plan_step(f, i, k);
  return status;
}

/* Only the first process says so. */
static void say_free(const struct unordered_training *f) {
  if (f->s->transport->rank > 0 || f->roles.nworkers == 1) return;
  diag_note(&f->s->diags, LOC_NONE,
            "staleness free: %d workers apply their gradients as they come, each with a batch of its own: no "
            "bits are promised",
            f->roles.nworkers);
}

enum dgc_status session_unordered_open(struct dgc_session *s, const struct dataset *ds, struct loader *loader,
                                       const struct unordered_hooks *hooks, void *training,
                                       struct unordered_training **out) {
  static const struct unordered_acts acts = {do_step, begin, apply, poll, wants};
  struct unordered_training *f = *out = arena_new(s->call, struct unordered_training);
  *f = (struct unordered_training){
      .s = s, .data = ds, .loader = loader, .hooks = *hooks, .training = training};
  find_roles(s, &f->roles);
  f->self = number_of(f->roles.workers, f->roles.nworkers, s->transport->rank);
  f->steps = arena_new_array(s->call, (size_t)f->roles.nworkers, struct step_of_worker);
  for (int i = 0; i < f->roles.nworkers; i++)
    f->steps[i].columns = arena_new_array(s->call, (size_t)ds->ncolumns, struct tensor);
  f->rows[0] = loader_batch_rows(loader, 0);
  f->rows[1] = loader_batch_rows(loader, loader_batches_per_epoch(loader) - 1);
  enum dgc_status status = plan_all(f);
  if (status) return status;
  say_free(f);
  f->free = unordered_create(s->call, s->transport, &f->roles, s->settlement->unordered_bound, &acts, f);
  return f->free ? DGC_OK : session_device_failed(s);
}

void session_unordered_close(struct unordered_training *f) {
  if (!f) return;
  unordered_destroy(f->free);
  for (int i = 0; f->steps && i < f->roles.nworkers; i++)
    for (int k = 0; k < SIZES; k++) {
      worker_unload(&f->steps[i].sizes[k]);
      mailbox_destroy(f->steps[i].boxes[k]);
    }
}

enum dgc_status session_unordered_run(struct unordered_training *f, int64_t batches,
                                      struct unordered_sum *sum) {
  if (unordered_stretch(f->free, batches, sum)) return DGC_OK;
  return f->status ? f->status : session_device_failed(f->s);
}

const struct loaded *session_unordered_step(const struct unordered_training *f) {
  return f->steps[0].sizes[0].step;
}

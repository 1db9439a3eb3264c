/* SPDX-License-Identifier: Apache-2.0 */
/* Training over files. */
#include "session/training.h"

#include "session/batch_run.h"
#include "session/best.h"
#include "session/checkpoint.h"
#include "session/cluster.h"
#include "session/compile.h"
#include "session/data.h"
#include "session/evaluate.h"
#include "session/init_from.h"
#include "session/metrics.h"
#include "session/model.h"
#include "session/options.h"
#include "session/settle.h"
#include "session/state/best.h"
#include "session/state/calls.h"
#include "session/state/data.h"
#include "session/state/evaluator.h"
#include "session/state/handlers.h"
#include "session/state/settlement.h"
#include "session/state/tracing.h"
#include "session/tasks.h"
#include "session/towers.h"
#include "session/trace.h"

#include "base/clock.h"
#include "ir/graph/graph.h"
#include "runtime/data/loader.h"
#include "runtime/mpi/transport.h"

#include <math.h>
#include <string.h>

void training_take_flags(struct training *t, unsigned flags) {
  t->stopped = flags & STOPPED;
  t->stop = flags & STOP;
  t->due = flags & DUE;
  t->unsaved = flags & UNSAVED;
}

static unsigned flags_of(const struct training *t) {
  return (t->stopped ? STOPPED : 0u) | (t->stop ? STOP : 0u) | (t->due ? DUE : 0u) |
         (t->unsaved ? UNSAVED : 0u);
}

/* Listens to dgc_stop; where tasks are processes, all end behind the same step, whichever of them was asked to. If one
 * does not answer, that is an error that whatever is read next reports. */
static struct training *listen(struct training *t) {
  int64_t seconds = t->s->options.checkpoint_seconds;
  t->stopped = t->stopped || session_stopped(t->s);
  t->unsaved = t->saving && session_save_failed(t->s);
  t->due = t->due || (seconds && clock_seconds() - t->saved >= (double)seconds);
  if (t->s->transport) {
    unsigned char flags = (unsigned char)flags_of(t);
    t->lost = !transport_any(t->s->transport, &flags);
    training_take_flags(t, flags);
  }
  return t;
}

bool training_is_done(const struct training *t) {
  return t->stop || t->stopped || t->lost || t->unsaved || goal_is_reached(&t->goal, &t->s->position) ||
         session_impatient(t->s);
}

enum dgc_status training_no_number(struct training *t, const struct loaded *l, int output, double value,
                                   int64_t step) {
  struct dgc_session *s = t->s;
  int losses = 0;
  for (int i = 0; i < l->plan->noutputs; i++) losses += l->plan->outputs[i].role == OUTPUT_LOSS;
  session_fail(s, DGC_MISMATCH, "the loss%s%s is %s at step %lld: the training ends", losses > 1 ? " " : "",
               losses > 1 ? l->plan->outputs[output].name : "", isnan(value) ? "not a number" : "infinite",
               (long long)step);
  bool kept = !t->saving || session_save_wait(s, s->options.checkpoint, &s->diags);
  t->saving = false;
  if (kept && t->saved_step > t->first_step)
    diag_help(&s->diags, LOC_NONE, "%s holds step %lld; --allow-nan goes on all the same",
              s->options.checkpoint, (long long)t->saved_step);
  else
    diag_help(&s->diags, LOC_NONE, "nothing has been saved; --allow-nan goes on all the same");
  if (t->data) dataset_help_odd(t->data, isnan(value), &s->diags);
  diag_help(
      &s->diags, LOC_NONE,
      step == 1
          ? "no step came before it, so no rate is too large: look at its data (--dump-batch %lld writes "
            "them), at first values, and at labels that the model computes, which may be no class"
          : "where its data are numbers (--dump-batch %lld writes what the step reads), try a smaller rate",
      (long long)step);
  return DGC_MISMATCH;
}

/* Adds the losses that are on their way. */
static enum dgc_status add_loss(struct training *t) {
  struct odd_loss odd;
  enum dgc_status status = losses_read_end(t->losses, &odd);
  return status || !odd.l ? status : training_no_number(t, odd.l, odd.output, odd.value, odd.step);
}

static enum dgc_status next_loss(struct training *t, const struct loaded *l, int64_t rows) {
  struct odd_loss odd;
  enum dgc_status status = losses_read_begin(t->losses, l, rows, t->s->position.step + 1, &odd);
  return status || !odd.l ? status : training_no_number(t, odd.l, odd.output, odd.value, odd.step);
}

/* By what the steps of the call took, with all that came between them. */
static double seconds_to_go(const struct training *t, double now) {
  const struct position *p = &t->s->position;
  const struct goal *g = &t->goal;
  int64_t each = loader_batches_per_epoch(t->loader), done = p->step - t->first_step;
  double steps = INFINITY;
  if (g->epochs >= 0) steps = (double)(g->epochs - p->epoch) * (double)each - (double)p->index;
  if (g->steps >= 0 && (double)(g->steps - p->step) < steps) steps = (double)(g->steps - p->step);
  return done > 0 && isfinite(steps) ? steps * (now - t->begin) / (double)done : NAN;
}

enum dgc_status training_report(struct training *t, const struct batch *b, bool end) {
  struct dgc_session *s = t->s;
  const struct every *log = &s->options.log_every;
  bool log_due = !t->alone && (end || t->evaluated || goal_is_reached(&t->goal, &s->position) ||
                               (log->steps || log->epochs ? every_due(log, &s->position) : b->last));
  bool due = b->last || log_due || t->due || (s->handlers->progress && clock_seconds() - t->reported >= 0.1);
  enum dgc_status status = due ? add_loss(t) : DGC_OK;
  if (status || !due || !s->handlers->progress) return status;
  double time = t->reported = clock_seconds();
  struct dgc_progress p = {
      .epoch = b->epoch,
      .epochs = t->goal.epochs > 0 ? t->goal.epochs : 0,
      .step = b->index + 1,
      .steps = loader_batches_per_epoch(t->loader),
      .total_steps = s->position.step,
      .loss = losses_mean(t->losses),
      .seconds = time - t->begin,
      .examples_per_second = time > t->epoch_begin ? (double)t->rows / (time - t->epoch_begin) : 0,
      .epoch_end = b->last,
      .end = end,
      .evaluated = t->evaluated,
      .log_due = log_due,
      .improved = t->improved,
      .epoch_seconds = time - t->epoch_begin,
      .seconds_to_go = seconds_to_go(t, time),
      .nvalidation = t->test ? s->model->nmeasures : 0,
      .validation = t->validation,
      .rates = t->rates,
      .goal_steps = t->goal.steps > 0 ? t->goal.steps : 0,
  };
  p.nlosses = losses_named(t->losses, &p.losses);
  p.nmetrics = losses_metrics(t->losses, &p.metrics);
  p.nrates = session_rates(s, s->position.step - 1, t->rates);
  s->calls->listening = true;
  if (!s->handlers->progress(s->handlers->progress_user, &p)) t->stop = true;
  s->calls->listening = false;
  return DGC_OK;
}

/* What is saved is good by all that can be known: the losses up to this step, and the variables that it leaves. The
 * step waits for a copy of them; what becomes of that is told later. */
enum dgc_status training_begin_save(struct training *t) {
  struct dgc_session *s = t->s;
  enum dgc_status status = add_loss(t);
  uint64_t begin = clock_ns();
  if (!status) status = session_save_begin(s, s->options.checkpoint, !s->options.allow_nan);
  trace_span(s, "checkpoint", begin);
  if (!status) t->saved_step = s->position.step;
  t->saving = true;
  t->due = false;
  t->saved = clock_seconds();
  return status;
}

/* The present step is saved when it returns. */
static enum dgc_status save(struct training *t) {
  bool begun = t->saving && t->saved_step == t->s->position.step;
  enum dgc_status status = begun ? DGC_OK : training_begin_save(t);
  if (!status && t->saving) status = session_save_end(t->s, t->s->options.checkpoint);
  t->saving = false;
  return status;
}

/* --- evaluation as it goes --- */

/* What was evaluated best so far. The step waits for a copy of it, as for that of a checkpoint. */
static enum dgc_status keep_best(struct training *t) {
  struct dgc_session *s = t->s;
  enum dgc_status status = session_save_begin(s, s->options.keep_best, !s->options.allow_nan);
  t->saving = t->kept = true;
  return status;
}

/* The time that it takes is none of the epoch's. Where dgc_stop ends it, it is for the training that goes on. */
static enum dgc_status evaluate(struct training *t) {
  struct dgc_session *s = t->s;
  double begin = clock_seconds();
  uint64_t begun = clock_ns();
  enum dgc_status status = session_evaluate(s, t->test, t->validation);
  trace_span(s, "evaluation", begun);
  if (status == DGC_STOPPED) return DGC_OK;
  for (int i = 0; !status && i < s->model->nmeasures; i++) t->validation[i].name = s->best->names[i];
  t->evaluated = !status;
  t->improved = !status && session_watched(s, t->validation);
  if (t->improved && s->options.keep_best) status = keep_best(t);
  t->epoch_begin += clock_seconds() - begin;
  return status;
}

/* Behind a step. What the last one gives is kept if it is the best, and is no part of what goes on. */
static enum dgc_status evaluate_if_due(struct training *t) {
  struct dgc_session *s = t->s;
  struct best_so_far before = s->best->so_far;
  bool due = t->test && session_evaluation_due(s);
  bool last = t->test && !due && session_keeps_last(s, &t->goal);
  if (!due && !last) return DGC_OK;
  enum dgc_status status = add_loss(t); /* what ends the training ends it before */
  if (!status) status = evaluate(t);
  if (last) session_leave_last(s, &before);
  return status;
}

/* Nothing was evaluated behind the step that comes. */
static void forget_evaluation(struct training *t) {
  t->evaluated = t->improved = false;
  for (int i = 0; t->test && i < t->s->model->nmeasures; i++) t->validation[i].value = NAN;
}

/* What there is to evaluate on: what is wrong with it is said before hours of training. It stays open if it is to
 * evaluate as it goes. */
static enum dgc_status open_test(struct training *t) {
  struct dgc_session *s = t->s;
  t->rates =
      arena_new_array(s->call, s->model->rates ? (size_t)s->model->rates->noutputs : 1, struct dgc_metric);
  enum dgc_status status = t->test ? DGC_OK : session_test_data(s, session_evaluates_often(s), &t->test);
  if (!status) session_say_tested(s, t->data, t->test);
  if (!status && t->test) status = session_takes_all(s, ENTRY_EVAL, t->test->rows);
  if (status) return status;
  if (!session_evaluates_often(s)) {
    dataset_close(t->test);
    t->test = NULL;
    return DGC_OK;
  }
  if (!t->test) {
    session_fail(s, DGC_USAGE, "there is nothing to evaluate on while it trains");
    diag_help(&s->diags, LOC_NONE, "give --eval-data NAME=FILE, or cut the data: --rows 0:A --eval-rows A:B");
    return DGC_USAGE;
  }
  int n = s->model->nmeasures;
  s->best->names = arena_new_array(s->arena, (size_t)n, const char *);
  t->validation = arena_new_array(s->call, (size_t)n, struct dgc_metric);
  for (int i = 0; i < n; i++) s->best->names[i] = arena_printf(s->arena, "val.%s", s->model->measures[i]);
  for (int i = 0; i < n; i++) t->validation[i].name = s->best->names[i];
  status = session_watch(s);
  return status ? status : session_ready(s, ENTRY_EVAL);
}

/* --- steps --- */

enum dgc_status training_end_batches(struct training *t, const struct batch *b) {
  struct dgc_session *s = t->s;
  s->position.epoch = b->last ? b->epoch + 1 : b->epoch;
  s->position.index = b->last ? 0 : b->index + 1;
  enum dgc_status status = b->last ? tasks_collect(s, clock_seconds() - t->epoch_begin) : DGC_OK;
  if (!status) status = evaluate_if_due(t);
  bool ends = !b->last && (session_impatient(s) || goal_is_reached(&t->goal, &s->position));
  if (!status && ends) status = tasks_collect(s, clock_seconds() - t->epoch_begin);
  if (!status) session_tell(s);
  if (!status) status = training_report(t, b, ends);
  t->told = ends;
  forget_evaluation(t);
  if (status || !b->last) return status;
  losses_clear(t->losses);
  t->rows = 0;
  t->epoch_begin = clock_seconds();
  return DGC_OK;
}

bool training_is_due(const struct training *t, const struct batch *b) {
  const struct options *o = &t->s->options;
  bool due = b->last || t->due || (o->checkpoint_every && t->s->position.step % o->checkpoint_every == 0);
  return o->checkpoint && due;
}

static enum dgc_status train_batch(struct training *t, const struct batch *b) {
  struct dgc_session *s = t->s;
  struct loaded *l;
  if (s->options.dump_batch == s->position.step + 1) {
    enum dgc_status wrong = session_dump_batch(s, t->data, t->loader, b);
    if (wrong) return wrong;
  }
  if (s->transport) transport_step(s->transport, s->position.step + 1);
  enum dgc_status status = session_batch_run(s, ENTRY_TRAIN, t->data, t->loader, b, &l);
  if (!status) status = next_loss(t, l, b->rows);
  if (status) return status;
  t->rows += b->rows;
  s->position.step++;
  status = training_end_batches(t, b);
  return !status && training_is_due(t, b) && !training_is_done(listen(t)) ? training_begin_save(t) : status;
}

/* A training that would go on from where another one ended, and ends there as well; or is asked for nothing. */
static void say_done(const struct training *t) {
  const struct position *p = &t->s->position;
  const struct options *o = &t->s->options;
  if (!training_is_done(t)) return;
  if (session_impatient(t->s)) return;
  bool epochs = t->goal.epochs >= 0 && p->epoch >= t->goal.epochs;
  long long is = (long long)(epochs ? p->epoch : p->step),
            wanted = (long long)(epochs ? t->goal.epochs : t->goal.steps);
  diag_note(&t->s->diags, LOC_NONE,
            "nothing is left to do: %lld %s%s done, and --%ss %lld%s asks for no more", is,
            epochs ? "epoch" : "step", is == 1 ? " is" : "s are", epochs ? "epoch" : "step", wanted,
            epochs && !o->epochs_given ? " (the default)" : "");
}

/* The end of a training that is not complete, because it was stopped or because data cannot be read: the steps that
 * were done are kept. */
static enum dgc_status end_early(struct training *t, enum dgc_status why) {
  struct dgc_session *s = t->s;
  const char *path = s->options.checkpoint, *end = why == DGC_STOPPED ? "stopped" : "ended";
  long long step = (long long)s->position.step;
  if (s->position.step == t->first_step)
    diag_note(&s->diags, LOC_NONE, "%s before step %lld: nothing is lost", end, step + 1);
  else if (!path)
    diag_note(&s->diags, LOC_NONE, "%s after step %lld: nothing was saved, as there is no --checkpoint FILE",
              end, step);
  else {
    enum dgc_status status = save(t);
    if (status) return status;
    diag_note(&s->diags, LOC_NONE, "%s after step %lld, saved: --resume %s goes on from there", end, step,
              path);
  }
  if (why == DGC_STOPPED && s->transport)
    transport_part(s->transport); /* it is all done, whatever becomes of that */
  return why;
}

static enum dgc_status train_in_order(struct training *t) {
  struct dgc_session *s = t->s;
  enum dgc_status status = DGC_OK;
  while (!status && !training_is_done(listen(t))) {
    const struct batch *b;
    uint64_t begin = s->tracing->trace ? clock_ns() : 0;
    if (loader_next(t->loader, &b, &s->diags) != LOADER_BATCH) return end_early(t, session_unread(s));
    if (begin) trace_span(s, "input", begin);
    status = train_batch(t, b);
    loader_release(t->loader, b);
  }
  return status;
}

/* What has come of the last epoch, where the training ends inside of it. */
static enum dgc_status report_end(struct training *t) {
  const struct position *p = &t->s->position;
  struct batch last = {.epoch = p->epoch, .index = p->index - 1};
  enum dgc_status status = tasks_collect(t->s, clock_seconds() - t->epoch_begin);
  return status || t->stopped ? status : training_report(t, &last, true);
}

/* Who asked for a batch should know that there is none. */
static void say_undumped(const struct training *t) {
  struct dgc_session *s = t->s;
  int64_t wanted = s->options.dump_batch, from = t->first_step, to = s->position.step;
  if (!wanted || (wanted > from && wanted <= to)) return;
  const char *file = batch_file(s->call, wanted);
  if (from == to)
    diag_warning(&s->diags, LOC_NONE, "dump-batch: %s is not written: this training did no step", file);
  else
    diag_warning(&s->diags, LOC_NONE, "dump-batch: %s is not written: this training did steps %lld to %lld",
                 file, (long long)from + 1, (long long)to);
}

static enum dgc_status train_over(struct training *t) {
  struct dgc_session *s = t->s;
  enum dgc_status status = session_fit_position(s, session_batch(s), t->data);
  if (status) return status;
  session_say_idle_towers(s);
  struct loader_options lo = {.batch = session_batch(s),
                              .shuffle = !s->options.no_shuffle,
                              .seed = (uint64_t)s->options.seed,
                              .epoch = s->position.epoch,
                              .index = s->position.index,
                              .memory = session_batch_memory(s)};
  t->first_step = s->begun = s->position.step;
  t->saved_step = -1; /* that was another training, which knew of no evaluation that comes first here */
  if (t->data->rows == 0) return session_fail(s, DGC_INPUT, "no rows to train on");
  if (s->settlement->free) session_unordered_loader(s, &lo);
  status = s->settlement->free ? DGC_OK : session_shard(s, &lo);
  if (!status && !s->settlement->free) status = session_own_towers(s, ENTRY_TRAIN, &lo);
  if (status) return status;
  t->loader = loader_create(s->call, t->data, &lo, &s->diags);
  if (!t->loader) return session_unread(s);
  status = session_check_batches(s, &t->goal, t->data->rows, t->loader);
  if (!status) say_done(t);
  if (!status) session_tell(s);
  tasks_begin(s);
  t->losses = losses_begin(s);
  forget_evaluation(t);
  t->begin = t->epoch_begin = t->saved = clock_seconds();
  /* Stopped before it could evaluate, and saved. */
  if (!status && s->position.step && t->test && session_evaluation_due(s)) status = evaluate(t);
  forget_evaluation(t);
  if (!status) status = s->settlement->free ? train_unordered(t) : train_in_order(t);
  if (!status) status = t->lost ? session_device_failed(s) : add_loss(t);
  if (!status && t->unsaved) status = session_save_end(s, s->options.checkpoint);
  if (!status && t->rows > 0 && !t->told) status = report_end(t);
  if (!status && t->kept) status = session_save_end(s, s->options.keep_best);
  if (status) return status;
  say_undumped(t);
  if (session_impatient(s) && !t->stopped)
    session_say_impatient(s);
  else
    session_say_unmeasured(s);
  if (t->stopped) return end_early(t, DGC_STOPPED);
  return s->options.checkpoint ? save(t) : DGC_OK;
}

static void end_training(void *training) {
  struct training *t = training;
  if (t->saving) session_save_wait(t->s, t->s->options.checkpoint, NULL);
  session_unordered_close(t->unordered);
  loader_destroy(t->loader);
  dataset_close(t->data);
  dataset_close(t->test);
  session_release(t->s);
}

static enum dgc_status refuse_evaluator(struct dgc_session *s) {
  struct cluster c;
  enum dgc_status status = session_cluster(s, &c);
  int rank;
  if (status) return status;
  if (s->evaluator->here) return session_fail(s, DGC_USAGE, "the task evaluator:0 does not train");
  if (s->evaluator->tasks && transport_launched(&rank) == 1)
    diag_note(&s->diags, LOC_NONE,
              "the evaluator of the cluster is a process of its own: --task evaluator:0");
  return DGC_OK;
}

/* A strategy is chosen for the rows that there are. Of several processes each opens its own when they have met. */
static enum dgc_status open_early(struct training *t) {
  struct dgc_session *s = t->s;
  int rank;
  if (!session_chooses(s) || transport_launched(&rank) > 1) return DGC_OK;
  enum dgc_status status = session_data(s, DATA_TRAIN, false, &t->data);
  if (!status) status = session_test_data(s, session_evaluates_often(s), &t->test);
  if (!status) session_note_rows(s, DATA_TRAIN, t->data);
  if (!status && t->test) session_note_rows(s, DATA_EVAL, t->test);
  return status;
}

static enum dgc_status train(struct dgc_session *s) {
  const struct options *o = &s->options;
  struct training t = {.s = s, .goal = options_goal(o)};
  struct arena_guard guard;
  arena_guard(&guard, end_training, &t);
  s->data->trained = true;
  enum dgc_status status = session_need(s, ENTRY_TRAIN);
  if (!status) status = refuse_evaluator(s);
  if (!status) status = options_fit_training(s);
  if (!status) status = session_may_save(s);
  if (!status) status = open_early(&t);
  if (!status) status = session_foresee(s, ENTRY_TRAIN);
  if (!status) status = session_ready(s, ENTRY_TRAIN);
  if (!status) status = session_claim(s);
  if (!status) status = session_init_from(s);
  if (!status) session_say_left_out(s);
  if (!status && s->settlement->free) status = session_unordered_allowed(s);
  if (!status && !t.data)
    status = session_data(s, DATA_TRAIN, false, &t.data); /* whose words are those of the test data too */
  if (!status) status = open_test(&t);
  if (!status) status = session_agree_to_train(s, t.data);
  if (!status) status = trace_open(s);
  if (!status) status = train_over(&t);
  arena_unguard(&guard);
  if (t.saving) session_save_wait(s, o->checkpoint, &s->diags); /* it was to end otherwise */
  t.saving = false;
  end_training(&t);
  enum dgc_status traced = trace_close(s);
  return status ? status : traced;
}

static enum dgc_status train_alone(struct dgc_session *s) {
  enum dgc_status status = session_alone(s);
  return status ? status : train(s);
}

int64_t dgc_step(const struct dgc_session *s) { return s->position.step; }

enum dgc_status dgc_train(struct dgc_session *s) { CALL(s, train_alone(s)); }

/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator: a task beside the training that evaluates what is saved, in a process of its own.
 *
 * It looks at the file of the option checkpoint again and again: that works for whatever process writes it, on
 * whatever machine, which the kernel's own notices of changes do not. A checkpoint replaces the one before it whole,
 * so what is read is one step's; whether it is another one than before, its checksum tells. Of several that come
 * while one is evaluated, the last one is next. The training ends where the options say, which are the same here, or
 * where its first process says that it has ended. */
#include "session/state/evaluator.h"
#include "session/checkpoint.h"
#include "session/cluster.h"
#include "session/data.h"
#include "session/options.h"
#include "session/state/data.h"

#include "base/clock.h"
#include "ir/strategies.h"
#include "runtime/mpi/transport.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* It has devices of its own, and no part in the strategy of the training, on which no number depends but by the
 * towers. */
static void own_strategy(struct dgc_session *s) {
  struct options *o = &s->options, asked = *o;
  options_drop_strategy(o);
  o->batch = asked.batch;
  o->towers = asked.towers;
  o->cluster = asked.cluster;
  o->task = asked.task;
  o->strategy = strategy_default(DEFAULT_FOR_DEVICES)->name;
  o->soft_placement = true; /* the model may name tasks of the training */
  session_unsettle(s);
}

/* False: there is none. What else is wrong with it, who reads it says: what cannot be looked at is always new. */
static bool look(const struct dgc_session *s, struct seen *out) {
  struct stat st;
  *out = (struct seen){.nanoseconds = -1};
  if (stat(s->options.checkpoint, &st) != 0) return errno != ENOENT;
  *out = (struct seen){st.st_ino, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
  return !S_ISREG(st.st_mode) || st.st_size > 0;
}

static bool same(const struct seen *a, const struct seen *b) {
  return a->nanoseconds >= 0 && a->inode == b->inode && a->seconds == b->seconds &&
         a->nanoseconds == b->nanoseconds;
}

/* What is there is of this training, unless that begins anew: then it must be known that it has not begun. */
static enum dgc_status look_before(struct dgc_session *s) {
  const char *path = s->options.checkpoint;
  int rank;
  if (!s->options.overwrite || !look(s, &s->evaluator->watched.seen) || transport_launched(&rank) > 1)
    return DGC_OK;
  session_fail(s, DGC_USAGE, "%s is there already, and the evaluator cannot know which training it is of",
               path);
  diag_help(&s->diags, LOC_NONE,
            "remove it before the training begins; without --overwrite it is evaluated as it is");
  return DGC_USAGE;
}

/* All that can be wrong is said before the training has begun: its processes wait for this one in session_open. */
static enum dgc_status begin(struct dgc_session *s) {
  struct cluster c;
  struct dataset *data = NULL;
  enum dgc_status status = session_cluster(s, &c);
  if (!status && !s->evaluator->here)
    status = session_fail(s, DGC_USAGE, "this process is not the task evaluator:0 of a cluster");
  if (!status) status = session_need(s, ENTRY_EVAL);
  if (!status && !s->options.checkpoint)
    status =
        session_fail(s, DGC_USAGE, "the task evaluator:0 needs --checkpoint FILE: where the training saves");
  if (status) return status;
  own_strategy(s);
  s->data->trained = true; /* by others: what they are given to train on is not what to evaluate on */
  status = session_data(s, DATA_EVAL, false, &data);
  dataset_close(data);
  if (!status) status = look_before(s);
  if (!status) status = session_open(s);
  s->evaluator->watched.begun = !status;
  return status;
}

/* Restores what is there, if it is new; *step: which one it is of. */
static enum dgc_status take(struct dgc_session *s, int64_t *step) {
  struct watched *w = &s->evaluator->watched;
  struct seen now;
  const char *checksum = *w->checksum ? w->checksum : NULL;
  bool other;
  if (!look(s, &now) || same(&now, &w->seen)) return DGC_OK;
  w->seen = now;
  enum dgc_status status = session_restore_other(s, s->options.checkpoint, &checksum, &other);
  if (status || !other) return status;
  w->restored = true;
  *w->checksum = 0;
  if (checksum && strlen(checksum) < sizeof w->checksum) strcpy(w->checksum, checksum);
  *step = s->position.step;
  return DGC_OK;
}

/* Whether no other one will come. What was saved last may be seen here later than it is known that it was. */
static bool is_last(struct dgc_session *s) {
  const struct goal goal = options_goal(&s->options);
  const struct watched *w = &s->evaluator->watched;
  if (w->restored && goal_is_reached(&goal, &s->position)) return true;
  return session_training_ended(s) && (w->saved < 0 || (w->restored && s->position.step >= w->saved));
}

static enum dgc_status give_up(struct dgc_session *s) {
  const struct options *o = &s->options;
  session_fail(s, DGC_RUNTIME, "no new checkpoint has come to %s for %lld s", o->checkpoint,
               (long long)o->eval_timeout);
  if (s->evaluator->watched.restored)
    diag_note(&s->diags, LOC_NONE, "the last one is of step %lld, and the training was to go on",
              (long long)s->position.step);
  return DGC_RUNTIME;
}

static enum dgc_status next(struct dgc_session *s, int64_t *step) {
  static const struct timespec nap = {.tv_nsec = 50000000};
  const uint64_t limit = (uint64_t)s->options.eval_timeout * 1000000000u;
  uint64_t begun = clock_ns(), looked = begun;
  enum dgc_status status = session_alone(s);
  *step = -1;
  if (!status && !s->evaluator->watched.begun) status = begin(s);
  while (!status && !is_last(s)) {
    if (session_stopped(s)) return session_fail(s, DGC_STOPPED, "the evaluation was stopped");
    status = take(s, step);
    if (status || *step >= 0) break;
    uint64_t now = clock_ns();
    begun += clock_stopped(looked, now);
    looked = now;
    if (limit && now - begun > limit) return give_up(s);
    nanosleep(&nap, NULL);
  }
  return status;
}

enum dgc_status dgc_next_checkpoint(struct dgc_session *s, int64_t *step) { CALL(s, next(s, step)); }

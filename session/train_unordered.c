/* SPDX-License-Identifier: Apache-2.0 */
/* Training whose steps have no fixed order: workers go on by themselves until all come together. */
#include "session/training.h"

#include "base/clock.h"
#include "session/checkpoint.h"

/* What this process wants while workers are in their steps; the others hear of it. */
static unsigned wants(void *training) {
  struct training *t = training;
  int64_t seconds = t->s->options.checkpoint_seconds;
  if (session_stopped(t->s)) t->own |= STOPPED;
  if (t->saving && session_save_failed(t->s)) t->own |= UNSAVED;
  if (seconds && clock_seconds() - t->saved >= (double)seconds) t->own |= DUE;
  return t->own;
}

static void add_sum(struct training *t, const struct unordered_sum *sum) {
  losses_add(t->losses, sum->loss, sum->weight);
  t->rows += (int64_t)sum->weight;
  t->s->position.step += sum->applied;
}

/* Tells on_progress, which may want to stop: that is for all to know first. */
static enum dgc_status told(void *training, const struct batch *b, const struct unordered_sum *sum) {
  struct training *t = training, now = *t;
  int64_t step = t->s->position.step;
  struct batch inside = *b;
  inside.last = false;
  now.alone = true;
  add_sum(&now, sum);
  enum dgc_status status = training_report(&now, &inside, false);
  losses_add(t->losses, -sum->loss, -sum->weight);
  t->s->position.step = step;
  t->reported = now.reported;
  if (now.stop) t->own |= STOP;
  return status;
}

/* All have come together. */
static enum dgc_status take_over(struct training *t, const struct unordered_sum *sum) {
  struct dgc_session *s = t->s;
  int64_t first = s->position.step;
  if (sum->odd)
    return training_no_number(t, session_unordered_step(t->unordered), sum->odd - 1, sum->odd_value,
                              first + sum->odd_step + 1);
  training_take_flags(t, sum->wants);
  t->own &= ~sum->wants;
  add_sum(t, sum);
  if (!sum->applied) return DGC_OK;
  struct batch b = {.epoch = s->position.epoch, .index = s->position.index + sum->applied - 1};
  b.last = b.index + 1 == loader_batches_per_epoch(t->loader);
  enum dgc_status status = training_end_batches(t, &b);
  if (t->stop) t->own |= STOP; /* by on_progress, perhaps */
  t->stop = sum->wants & STOP;
  if (status || !training_is_due(t, &b) || training_is_done(t)) return status;
  t->own &= ~(unsigned)DUE;
  return training_begin_save(t);
}

/* Until all come together: to save, at the end of an epoch, or in the end. */
static int64_t batches_until(const struct training *t) {
  const struct position *p = &t->s->position;
  const struct options *o = &t->s->options;
  int64_t count = loader_batches_per_epoch(t->loader) - p->index;
  if (t->goal.steps >= 0 && t->goal.steps - p->step < count) count = t->goal.steps - p->step;
  int64_t every = o->checkpoint_every;
  if (every && every - p->step % every < count) count = every - p->step % every;
  every = t->test ? o->eval_every.steps : 0;
  if (every && every - p->step % every < count) count = every - p->step % every;
  every = o->log_every.steps;
  if (every && every - p->step % every < count) count = every - p->step % every;
  return count;
}

enum dgc_status train_unordered(struct training *t) {
  static const struct unordered_hooks hooks = {wants, told};
  enum dgc_status status = session_unordered_open(t->s, t->data, t->loader, &hooks, t, &t->unordered);
  t->begin = t->epoch_begin = t->saved = clock_seconds();
  while (!status && !training_is_done(t)) {
    struct unordered_sum sum;
    status = session_unordered_run(t->unordered, batches_until(t), &sum);
    if (!status) status = take_over(t, &sum);
  }
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Questions, answers, and what is to be said of them. */
#include "runtime/mpi/watch.h"

#include "ir/target.h"

#include <string.h>
#include <time.h>

/* An answer is waited for by as long again as a quarter of the limit, but neither shorter nor longer than this: the
 * process may want for a processor. */
enum { SECOND = 1000000000, SHORTEST = 1, LONGEST = 10 };

struct question {
  int asker, device;
};

/* What is sent is kept until the end: it is little, and the process fails. */
static void tell(const struct transport *t, const void *data, size_t bytes, int to, int tag) {
  struct watch *w = t->watch;
  if (!w->arena) w->arena = arena_create();
  void *channel = t->sender(t, arena_copy(w->arena, data, bytes), bytes, to, tag);
  if (!channel) return;
  struct told *told = arena_new(w->arena, struct told);
  *told = (struct told){channel, t->drop, w->told};
  w->told = told;
  t->start(channel);
}

void watch_end(const struct transport *t) {
  struct watch *w = t->watch;
  for (struct told *i = w->told; i; i = i->next) i->drop(i->channel);
  t->stop(); /* what is still under way arrives, from the arena */
  if (w->arena) arena_destroy(w->arena);
}

void watch_answer(const struct transport *t, whereabouts_fn *fn, void *of) {
  struct question q;
  while (t->take(t, &q, sizeof q, TAG_ASK)) {
    struct whereabouts mine = {.process = t->rank, .waits_for = -1, .device = -1, .step = t->watch->step};
    fn(of, q.device, &mine);
    tell(t, &mine, sizeof mine, q.asker, TAG_ANSWER);
  }
}

static void as_at_first(void *watch, int device, struct whereabouts *out) {
  (void)device;
  *out = ((const struct watch *)watch)->chain[0];
}

/* The answer of the one that `last` waits for, at the end of the chain; false if it does not come. */
static bool ask(const struct transport *t, const struct whereabouts *last) {
  static const struct timespec nap = {.tv_nsec = 1000000};
  struct watch *w = t->watch;
  const struct question q = {t->rank, last->device};
  uint64_t patience = (uint64_t)w->limit * SECOND / 4;
  if (patience < (uint64_t)SHORTEST * SECOND) patience = (uint64_t)SHORTEST * SECOND;
  if (patience > (uint64_t)LONGEST * SECOND) patience = (uint64_t)LONGEST * SECOND;
  tell(t, &q, sizeof q, last->waits_for, TAG_ASK);
  for (uint64_t begin = transport_now(t); transport_now(t) - begin < patience;) {
    struct whereabouts *next = &w->chain[w->length];
    watch_answer(t, as_at_first, w);
    if (t->take(t, next, sizeof *next, TAG_ANSWER) && next->process == last->waits_for) return true;
    if (!t->now) nanosleep(&nap, NULL);
  }
  return false;
}

/* Whether the process has spoken in the chain. */
static bool is_known(const struct watch *w, int process) {
  for (int i = 0; i < w->length; i++)
    if (w->chain[i].process == process) return true;
  return false;
}

void watch_inquire(const struct transport *t, const struct whereabouts *mine) {
  struct watch *w = t->watch;
  enum { MOST = sizeof w->chain / sizeof *w->chain };
  if (w->length) return;
  w->chain[0] = *mine;
  w->chain[0].process = t->rank;
  w->chain[0].step = w->step;
  for (w->length = 1; w->length < MOST; w->length++) {
    const struct whereabouts *last = &w->chain[w->length - 1];
    if (last->waits_for < 0 || is_known(w, last->waits_for)) return;
    w->silent = !ask(t, last);
    if (w->silent) return;
  }
}

bool watch_bereft(const struct transport *t, const struct whereabouts *mine) {
  struct watch *w = t->watch;
  if (w->length) return true;
  if (w->parting) return false;
  w->gone = 1 + (t->ended ? t->ended(t) : -1);
  if (!w->gone) return false;
  w->chain[0] = *mine;
  w->chain[0].process = t->rank;
  w->chain[0].step = w->step;
  w->length = 1;
  return true;
}

/* "/job:worker/task:1 on node7" */
static const char *name(const struct transport *t, const struct target *target, int process,
                        struct arena *a) {
  const char *host = t->host(t, process);
  int *of = arena_new_array(a, target ? (size_t)target->ndevices : 0, int);
  if (target) target_processes(target, of);
  for (int i = 0; target && i < target->ndevices; i++) {
    const struct device_name *n = &target->devices[i].name;
    if (of[i] == process && n->job) return arena_printf(a, "/job:%s/task:%d on %s", n->job, n->task, host);
  }
  return arena_printf(a, "process %d on %s", process, host);
}

static const char *of_step(const struct whereabouts *s, struct arena *a) {
  return s->step > 0 ? arena_printf(a, " of step %lld", (long long)s->step) : "";
}

static void say_waiting(const struct transport *t, const struct target *target, const struct whereabouts *s,
                        struct diags *d) {
  if (s->waits_for < 0) return;
  diag_note(d, LOC_NONE, "%s waits for %s, which has not %s%s", name(t, target, s->process, d->arena),
            name(t, target, s->waits_for, d->arena), s->what, of_step(s, d->arena));
}

void watch_report(const struct transport *t, const struct target *target, struct diags *d) {
  const struct watch *w = t->watch;
  struct arena *a = d->arena;
  int end = w->length - 1; /* the last one that waits */
  if (w->gone) {
    diag_error(d, LOC_NONE, "%s has ended", name(t, target, w->gone - 1, a));
    say_waiting(t, target, &w->chain[0], d);
    return;
  }
  bool computes = w->chain[end].waits_for < 0;
  if (computes && end > 0) end--;
  const struct whereabouts *last = &w->chain[end];
  diag_error(d, LOC_NONE, "%s has not %s%s for %d s%s", name(t, target, last->waits_for, a), last->what,
             of_step(last, a), w->limit,
             w->silent  ? ", and does not answer"
             : computes ? arena_printf(a, ": it is at %s", w->chain[end + 1].what)
                        : ", but waits as well");
  diag_note(d, LOC_NONE, "%s waits for that", name(t, target, last->process, a));
  for (int i = end; i-- > 0;) say_waiting(t, target, &w->chain[i], d);
}

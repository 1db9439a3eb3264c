/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous training without a fixed order, over threads whose messages come late, in any order that a transport
 * allows: whatever happens, each step is begun once and applied once, servers apply all of them in one sequence,
 * workers compute with what that sequence had come to, nobody is further ahead than the bound, all learn the same of
 * a stretch, and nobody waits for ever. What is summed are integers, so that a lost or a doubled step shows. */
#include "runtime/mpi/mailbox.h"
#include "runtime/mpi/unordered.h"
#include "tests/support/processes.h"
#include "tests/support/random.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 5, NUMBERS = 3, STEPS = 40, STRETCHES = 4, TAG = TAG_MESSAGES + 1, ASKED };

/* What the coordinator has let happen. */
struct event {
  bool begins;
  int worker;
};

struct world {
  int nworkers, nservers;
  int workers[MOST], servers[MOST];
  int64_t bound, steps[STRETCHES];
  int stopper[STRETCHES],
      stops_after[STRETCHES]; /* a process wants to stop when it was asked so often; -1: none does */
  uint64_t seed;
  struct unordered_sum sums[2 * MOST][STRETCHES];
  int64_t values[MOST]
                [NUMBERS]; /* of each server in the end: how many were applied, and two sums over them */
  struct event events[STRETCHES][2 * STEPS];
  int nevents[STRETCHES];
  bool lost, torn, crooked; /* a wait that failed; variables of two moments; servers at different orders */
};

/* The messages of a server and a worker, from the server's side. */
struct link {
  struct mailbox *box;
  void *out, *in, *to_others[MOST], *from_first;
  void *asked, *asked_again, *answers;
  int64_t question, answer;
  bool busy, answered;
  int64_t place[2][NUMBERS], given, told; /* `in` is for one of the places: addresses change */
  int now;
};

struct process_state {
  struct world *w;
  const struct transport *t;
  int self, asked, stretch; /* self: its number among the workers or the servers */
  bool serves;
  struct rng random;
  int64_t variable[NUMBERS];
  struct link links[MOST]; /* by worker */
  void *in[MOST], *out[MOST];
  int64_t from[MOST][NUMBERS], to[NUMBERS];
  void *asks[MOST], *told[MOST];
  int64_t question, answers[MOST];
};

static void await(const struct transport *t, void *channel) {
  while (!t->done(channel)) sched_yield();
}

/* --- a server --- */

static void bind(struct process_state *p, struct link *l, int worker) {
  const struct transport *t = mailbox_transport(l->box);
  int peer = p->w->workers[worker];
  l->now = rng_below(&p->random, 2);
  l->out = t->sender(t, p->variable, sizeof p->variable, peer, TAG);
  l->in = t->receiver(t, l->place[l->now], sizeof p->variable, peer, TAG);
}

static void unbind(struct link *l) {
  const struct transport *t = mailbox_transport(l->box);
  t->drop(l->out);
  t->drop(l->in);
}

static void open_links(struct process_state *p) {
  struct world *w = p->w;
  for (int i = 0; i < w->nworkers; i++) {
    struct link *l = &p->links[i];
    l->box = mailbox_create(p->t, w->workers[i]);
    const struct transport *t = mailbox_transport(l->box);
    bind(p, l, i);
    l->asked = t->receiver(t, &l->question, sizeof l->question, w->workers[i], ASKED);
    l->asked_again = t->receiver(t, &l->question, sizeof l->question, w->workers[i], ASKED);
    l->answers = t->sender(t, &l->answer, sizeof l->answer, w->workers[i], ASKED);
    for (int k = 1; k < w->nservers && p->self == 0; k++)
      l->to_others[k] = t->sender(t, &l->given, sizeof l->given, w->servers[k], TAG);
    if (p->self > 0) l->from_first = t->receiver(t, &l->told, sizeof l->told, w->servers[0], TAG);
  }
}

static void close_links(struct process_state *p) {
  for (int i = 0; i < p->w->nworkers; i++) {
    struct link *l = &p->links[i];
    const struct transport *t = mailbox_transport(l->box);
    unbind(l);
    t->drop(l->asked);
    t->drop(l->asked_again);
    t->drop(l->answers);
    for (int k = 1; k < p->w->nservers && p->self == 0; k++) t->drop(l->to_others[k]);
    if (p->self > 0) t->drop(l->from_first);
    mailbox_destroy(l->box);
  }
}

static void note(struct process_state *p, bool begins, int worker) {
  struct world *w = p->w;
  if (p->self == 0) w->events[p->stretch][w->nevents[p->stretch]++] = (struct event){begins, worker};
}

static bool begin(void *user, int worker, int64_t step) {
  struct process_state *p = user;
  (void)step;
  struct link *l = &p->links[worker];
  const struct transport *t = mailbox_transport(l->box);
  note(p, true, worker);
  l->busy = true;
  l->answered = false;
  mailbox_begin(l->box);
  t->start(l->out);
  return t->done(l->out); /* at once */
}

/* Answers what a worker asks in its step: not before it has begun. */
static bool poll(void *user) {
  struct process_state *p = user;
  for (int i = 0; i < p->w->nworkers; i++) {
    struct link *l = &p->links[i];
    const struct transport *t = mailbox_transport(l->box);
    mailbox_poll(l->box);
    if (!l->busy || l->answered || !mailbox_has(l->box, ASKED)) continue;
    l->answered = true;
    t->start(l->asked);
    await(t, l->asked);
    l->answer = l->question + 1;
    t->start(l->answers);
    await(t, l->answers);
  }
  return true;
}

/* As a plan runs: the first server tells the others how many it has applied. */
static bool apply(void *user, int worker, int64_t step) {
  struct process_state *p = user;
  struct link *l = &p->links[worker];
  const struct transport *t = mailbox_transport(l->box);
  (void)step;
  note(p, false, worker);
  l->busy = false;
  if (rng_chance(&p->random, 30)) {
    unbind(l);
    bind(p, l, worker);
  }
  l->given = p->variable[0];
  for (int k = 1; k < p->w->nservers && p->self == 0; k++) t->start(l->to_others[k]);
  if (p->self > 0) t->start(l->from_first);
  t->start(l->in);
  await(t, l->in);
  for (int k = 1; k < p->w->nservers && p->self == 0; k++) await(t, l->to_others[k]);
  if (p->self > 0) await(t, l->from_first);
  if (p->self > 0 && l->told != p->variable[0]) p->w->crooked = true;
  t->start(l->asked_again); /* as the update of rows by their numbers does */
  await(t, l->asked_again);
  if (l->question != l->place[l->now][1]) p->w->crooked = true;
  for (int i = 0; i < NUMBERS; i++) p->variable[i] += l->place[l->now][i];
  return mailbox_end(l->box);
}

/* --- a worker --- */

static bool step(void *user, int64_t number, const struct unordered_sum *sum, struct unordered_report *out) {
  struct process_state *p = user;
  const struct world *w = p->w;
  (void)sum;
  for (int i = 0; i < w->nservers; i++) p->t->start(p->in[i]);
  for (int i = 0; i < w->nservers; i++) await(p->t, p->in[i]);
  for (int i = 1; i < w->nservers; i++)
    if (memcmp(p->from[i], p->from[0], sizeof p->from[0]) != 0) p->w->torn = true;
  for (int k = rng_below(&p->random, 30); k > 0; k--) sched_yield();
  p->question = number + 1;
  for (int i = 0; i < w->nservers; i++) p->t->start(p->asks[i]), p->t->start(p->told[i]);
  for (int i = 0; i < w->nservers; i++) {
    await(p->t, p->asks[i]);
    await(p->t, p->told[i]);
    if (p->answers[i] != number + 2) p->w->crooked = true;
  }
  p->to[0] = 1;
  p->to[1] = number + 1;
  p->to[2] = (number + 1) * (number + 1);
  for (int i = 0; i < w->nservers; i++) p->t->start(p->out[i]);
  for (int i = 0; i < w->nservers; i++) await(p->t, p->out[i]);
  *out = (struct unordered_report){.loss = (double)number, .weight = 1};
  return true;
}

static void open_worker(struct process_state *p) {
  const struct world *w = p->w;
  for (int i = 0; i < w->nservers; i++) {
    p->in[i] = p->t->receiver(p->t, p->from[i], sizeof p->from[i], w->servers[i], TAG);
    p->out[i] = p->t->sender(p->t, p->to, sizeof p->to, w->servers[i], TAG);
    p->asks[i] = p->t->sender(p->t, &p->question, sizeof p->question, w->servers[i], ASKED);
    p->told[i] = p->t->receiver(p->t, &p->answers[i], sizeof p->answers[i], w->servers[i], ASKED);
  }
}

static void close_worker(struct process_state *p) {
  for (int i = 0; i < p->w->nservers; i++) {
    p->t->drop(p->in[i]);
    p->t->drop(p->out[i]);
    p->t->drop(p->asks[i]);
    p->t->drop(p->told[i]);
  }
}

/* --- all --- */

static unsigned wants(void *user) {
  struct process_state *p = user;
  const struct world *w = p->w;
  return w->stopper[p->stretch] == p->t->rank && p->asked++ >= w->stops_after[p->stretch] ? 1u << p->t->rank
                                                                                          : 0;
}

static int place_of(const int *list, int count, int process) {
  for (int i = 0; i < count; i++)
    if (list[i] == process) return i;
  return -1;
}

static void one_process(void *arg, const struct transport *t) {
  static const struct unordered_acts acts = {step, begin, apply, poll, wants};
  struct world *w = arg;
  struct process_state p = {.w = w, .t = t, .random = {w->seed + (uint64_t)t->rank}};
  const struct unordered_roles roles = {w->workers, w->servers, w->nworkers, w->nservers};
  int worker = place_of(w->workers, w->nworkers, t->rank),
      server = place_of(w->servers, w->nservers, t->rank);
  struct arena *a = arena_create();
  p.serves = server >= 0;
  p.self = p.serves ? server : worker;
  if (p.serves)
    open_links(&p);
  else
    open_worker(&p);
  struct unordered *f = unordered_create(a, t, &roles, w->bound, &acts, &p);
  for (p.stretch = 0; p.stretch < STRETCHES; p.stretch++) {
    p.asked = 0;
    if (!unordered_stretch(f, w->steps[p.stretch], &w->sums[t->rank][p.stretch])) w->lost = true;
    unsigned char flag = t->rank == 0, *any = &flag; /* what all do together comes between */
    if (!transport_any(t, any) || !flag) w->lost = true;
  }
  unordered_destroy(f);
  if (p.serves)
    close_links(&p);
  else
    close_worker(&p);
  if (p.serves) memcpy(w->values[server], p.variable, sizeof p.variable);
  arena_destroy(a);
}

/* --- what must hold --- */

/* Steps are begun and ended in turn by each worker, and nobody begins more than the bound beside another's step. */
static void check_events(const struct world *w, int stretch) {
  bool busy[MOST] = {false};
  int64_t beside[MOST][MOST] = {{0}};
  for (int i = 0; i < w->nevents[stretch]; i++) {
    const struct event *e = &w->events[stretch][i];
    assert_true(busy[e->worker] != e->begins);
    busy[e->worker] = e->begins;
    if (!e->begins) continue;
    for (int k = 0; k < w->nworkers; k++) {
      if (k == e->worker || !busy[k]) continue;
      assert_true(++beside[k][e->worker] <= w->bound);
    }
    memset(beside[e->worker], 0, sizeof beside[e->worker]);
  }
}

static void check_world(const struct world *w) {
  int64_t expected[NUMBERS] = {0};
  assert_false(w->lost);
  assert_false(w->torn);
  assert_false(w->crooked);
  for (int k = 0; k < STRETCHES; k++) {
    const struct unordered_sum *sum = &w->sums[0][k];
    double loss = 0;
    for (int i = 1; i < w->nworkers + w->nservers; i++) assert_memory_equal(sum, &w->sums[i][k], sizeof *sum);
    assert_int_equal(sum->begun, sum->applied);
    assert_true(sum->begun <= w->steps[k]);
    if (!sum->wants) assert_int_equal(sum->begun, w->steps[k]);
    if (sum->wants) assert_int_equal(sum->wants, 1u << w->stopper[k]);
    for (int64_t i = 1; i <= sum->begun; i++) {
      expected[0]++, expected[1] += i, expected[2] += i * i;
      loss += (double)(i - 1);
    }
    assert_true(sum->loss == loss && sum->weight == (double)sum->begun); /* integers: in any order */
    assert_int_equal(w->nevents[k], 2 * sum->begun);
    check_events(w, k);
  }
  for (int i = 0; i < w->nservers; i++) assert_memory_equal(w->values[i], expected, sizeof expected);
}

static void make_world(struct world *w, struct rng *r, uint64_t seed) {
  *w = (struct world){.nworkers = 1 + rng_below(r, 4), .nservers = 1 + rng_below(r, 3), .seed = seed};
  int n = w->nworkers + w->nservers, all[2 * MOST];
  for (int i = 0; i < n; i++) {
    int at = rng_below(r, i + 1); /* in any order */
    all[i] = all[at];
    all[at] = i;
  }
  for (int i = 0; i < w->nworkers; i++) w->workers[i] = all[i];
  for (int i = 0; i < w->nservers; i++) w->servers[i] = all[w->nworkers + i];
  w->bound = rng_chance(r, 30) ? 0 : rng_below(r, 5);
  for (int k = 0; k < STRETCHES; k++) {
    w->steps[k] = rng_chance(r, 20) ? 0 : rng_below(r, STEPS);
    w->stopper[k] = rng_chance(r, 40) ? rng_below(r, n) : -1;
    w->stops_after[k] = rng_below(r, 30);
  }
}

static uint64_t seeds = 1; /* or as the first argument says */

static void test_each_step_counts_once(void **state) {
  (void)state;
  struct arena *a = arena_create();
  struct rng r = {20};
  for (uint64_t seed = 1; seed <= seeds; seed++)
    for (enum delivery d = 0; d < DELIVERIES; d++) {
      struct world *w = arena_new(a, struct world);
      make_world(w, &r, seed);
      const char *wrong = processes_run(a, w->nworkers + w->nservers, d, seed, one_process, w);
      if (wrong) fail_msg("seed %d, delivery %d: %s", (int)seed, (int)d, wrong);
      check_world(w);
      arena_reset(a);
    }
  arena_destroy(a);
}

int main(int argc, char **argv) {
  if (argc > 1) seeds = strtoull(argv[1], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_step_counts_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Boards. */
#include "runtime/pieces.h"

#include "base/arena.h"
#include "base/clock.h"
#include "runtime/workers.h"

#include <stdlib.h>

/* board.open */
enum { BACK_BITS = 16, COUNT_BITS = 2 * BACK_BITS };
#define FRONT ((uint64_t)1 << BACK_BITS)

static uint64_t open_of(int number, int stage) {
  return (uint64_t)(number * MAX_STAGES + stage) << COUNT_BITS;
}

static const char *asked_cost(void) { return getenv("DGC_PIECE_COST"); }

bool pieces_pay(int64_t cost) { return cost >= (asked_cost() ? 1 : SHARED_COST); }

int pieces_for(int64_t cost, int64_t units) {
  int64_t least = asked_cost() ? strtoll(asked_cost(), NULL, 10) : PIECE_COST,
          count = cost / (least > 0 ? least : 1);
  if (count > MOST_PIECES) count = MOST_PIECES;
  if (count > units) count = units;
  return count < 1 ? 1 : (int)count;
}

struct taken {
  const struct shared *shared;
  int stage, first, end;
};

/* Memory that runs out fails the run, but leaves nobody waiting for the piece. */
static void run_taken(struct board *b, const struct taken *t) {
  const struct pieces *p = t->shared->pieces;
  jmp_buf point, *outer = arena_on_failure(&point);
  if (setjmp(point))
    atomic_store(b->failed, true);
  else
    p->run(t->shared->args, p->state, t->stage, t->first, t->end);
  arena_on_failure(outer);
}

static void are_done(struct board *b, const struct taken *t) {
  atomic_fetch_add_explicit(&b->done, t->end - t->first, memory_order_release);
}

/* So many of those that are left that everybody's next ones are about half of them. */
static int share_of(const struct board *b, int left) {
  int share = left / (2 * workers_count(b->workers));
  return share < 1 ? 1 : share;
}

/* Takes pieces from the front or the back of what is open; false: none is left. */
static bool take(struct board *b, bool front, struct taken *t) {
  uint64_t open = atomic_load_explicit(&b->open, memory_order_acquire);
  for (;;) {
    int number = (int)(open >> COUNT_BITS);
    int from_front = (int)(open >> BACK_BITS & (FRONT - 1)), from_back = (int)(open & (FRONT - 1));
    t->shared = b->all[number / MAX_STAGES];
    if (t->shared == NULL) return false;
    t->stage = number % MAX_STAGES;
    int count = t->shared->pieces->count[t->stage], left = count - from_front - from_back;
    if (left <= 0) return false;
    int share = share_of(b, left);
    t->first = front ? from_front : count - from_back - share;
    t->end = t->first + share;
    if (atomic_compare_exchange_weak_explicit(&b->open, &open, open + (front ? FRONT : 1) * (uint64_t)share,
                                              memory_order_acquire, memory_order_acquire))
      return true;
  }
}

struct step_time board_time(const struct board *b) {
  uint64_t now = clock_ns();
  return (struct step_time){now, now + atomic_load_explicit(&b->helped, memory_order_relaxed) - b->waited};
}

bool board_help(struct board *b) {
  struct taken t;
  if (!take(b, false, &t)) return false;
  uint64_t begin = b->timed ? clock_ns() : 0;
  run_taken(b, &t);
  if (begin) atomic_fetch_add_explicit(&b->helped, clock_ns() - begin, memory_order_relaxed);
  are_done(b, &t);
  return true;
}

void shared_run_alone(void *const *args, const void *state) {
  const struct shared *s = state;
  for (int stage = 0; stage < s->pieces->nstages; stage++)
    s->pieces->run(args, s->pieces->state, stage, 0, s->pieces->count[stage]);
}

static void run_stage(const struct shared *s, int stage) {
  struct board *b = s->board;
  int count = s->pieces->count[stage];
  atomic_store_explicit(&b->done, 0, memory_order_relaxed);
  atomic_store_explicit(&b->open, open_of(s->number, stage), memory_order_release);
  for (struct taken t; take(b, true, &t);) {
    run_taken(b, &t);
    are_done(b, &t);
  }
  unsigned spins = 0;
  uint64_t begin = b->timed ? clock_ns() : 0;
  while (atomic_load_explicit(&b->done, memory_order_acquire) < count) workers_relax(b->workers, &spins);
  if (begin) b->waited += clock_ns() - begin;
}

void shared_run(void *const *args, const void *state) {
  const struct shared *s = state;
  if (s->board->alone)
    shared_run_alone(args, state);
  else
    for (int stage = 0; stage < s->pieces->nstages; stage++) run_stage(s, stage);
}

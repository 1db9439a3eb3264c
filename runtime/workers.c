/* SPDX-License-Identifier: Apache-2.0 */
/* The team: a generation counter hands out work, a counter of finished workers takes it back. */
#include "runtime/workers.h"

#include "base/line.h"
#include "base/thread.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A worker spins for some hundred microseconds before it parks: longer than what lies between two training
 * steps. Inside of a run it offers its core to others after some tens: whom it waits for is then late, perhaps
 * for want of a core. Where no one is to spin it sleeps for a moment if that has not helped. */
enum {
  SPINS_BEFORE_PARKING = 1 << 14,
  SPINS_BEFORE_YIELDING = 1 << 11,
  SPINS_WHEN_CROWDED = 64,
  YIELDS_BEFORE_NAPPING = 64
};

struct worker {
  struct workers *team;
  int index;
  pthread_t thread;
};

struct workers {
  int count;
  bool crowded; /* more workers than cores, or every instruction is slow: let others run soon */
  bool naps;    /* and sleep */
  work_fn *fn;
  void *arg;
  bool stop;
  struct worker *members; /* of workers 1 .. count-1 */
  _Alignas(CACHE_LINE) _Atomic uint32_t generation;
  _Alignas(CACHE_LINE) _Atomic int parked;
  _Alignas(CACHE_LINE) _Atomic int finished;
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define INSTRUMENTED true
#elif defined(__has_feature)
#define INSTRUMENTED (__has_feature(thread_sanitizer) || __has_feature(address_sanitizer))
#else
#define INSTRUMENTED false
#endif

int cpu_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (int)online : 1;
}

static void spin_hint(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

bool workers_relax(const struct workers *w, unsigned *spins) {
  unsigned limit = w->crowded ? SPINS_WHEN_CROWDED : SPINS_BEFORE_YIELDING;
  if (++*spins < limit) {
    spin_hint();
    return false;
  }
  if (w->naps && *spins > limit + YIELDS_BEFORE_NAPPING)
    thread_nap();
  else
    sched_yield();
  return true;
}

static void park(struct workers *w, uint32_t seen) {
  atomic_fetch_add(&w->parked, 1);
  while (atomic_load(&w->generation) == seen)
    syscall(SYS_futex, &w->generation, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
  atomic_fetch_sub(&w->parked, 1);
}

static void hand_out(struct workers *w) {
  atomic_store_explicit(&w->finished, 0, memory_order_relaxed);
  atomic_fetch_add(&w->generation, 1);
  if (atomic_load(&w->parked)) syscall(SYS_futex, &w->generation, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void await_next(struct workers *w, uint32_t seen) {
  unsigned limit = w->crowded ? SPINS_WHEN_CROWDED : SPINS_BEFORE_PARKING;
  for (unsigned spins = 0; spins < limit; spins++) {
    if (atomic_load_explicit(&w->generation, memory_order_acquire) != seen) return;
    spin_hint();
  }
  park(w, seen);
}

static void *member_main(void *arg) {
  struct worker *m = arg;
  struct workers *w = m->team;
  for (uint32_t seen = 0;; seen++) {
    await_next(w, seen);
    if (w->stop) return NULL;
    w->fn(w->arg, m->index);
    atomic_fetch_add_explicit(&w->finished, 1, memory_order_release);
  }
}

void workers_run(struct workers *w, work_fn *fn, void *arg) {
  w->fn = fn;
  w->arg = arg;
  if (w->count > 1) hand_out(w);
  fn(arg, 0);
  unsigned spins = 0;
  while (atomic_load_explicit(&w->finished, memory_order_acquire) < w->count - 1) workers_relax(w, &spins);
}

struct workers *workers_create(int count, struct diags *d) {
  struct workers *w = aligned_alloc(CACHE_LINE, sizeof *w);
  struct worker *members = calloc((size_t)count, sizeof *members);
  if (!w || !members) {
    free(w);
    free(members);
    diag_failure(d, LOC_NONE, "out of memory");
    return NULL;
  }
  memset(w, 0, sizeof *w);
  w->count = 1;
  w->naps = !thread_may_spin();
  w->crowded = w->naps || INSTRUMENTED || count > cpu_cores();
  w->members = members;
  for (int i = 1; i < count; i++) {
    members[i] = (struct worker){.team = w, .index = i};
    int error = thread_start(&members[i].thread, member_main, &members[i]);
    if (error) {
      diag_failure(d, LOC_NONE, "cannot start worker thread %d: %s", i, strerror(error));
      workers_destroy(w);
      return NULL;
    }
    w->count++;
  }
  return w;
}

void workers_destroy(struct workers *w) {
  if (!w) return;
  w->stop = true;
  if (w->count > 1) hand_out(w);
  for (int i = 1; i < w->count; i++) pthread_join(w->members[i].thread, NULL);
  free(w->members);
  free(w);
}

int workers_count(const struct workers *w) { return w->count; }

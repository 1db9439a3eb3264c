/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory is filled by several threads: one moves 7 to 10 GB/s, a fifth of what then travels to the card. They
 * take shares of the pieces in order, so that the first piece is soon there; the caller's thread fills as well
 * while there is none to be sent. */
#include "runtime/cuda/engine.h"
#include "runtime/workers.h"

#include <string.h>

/* Threads at most; cores of which all are taken. From FOR_MANY bytes on several threads fill, each SHARE bytes at a
 * time; a share begins where a line of the cache does. */
enum { MOST_MOVERS = 8, FEW_CORES = 4, FOR_MANY = 512 << 10, SHARE = 64 << 10 };

struct fill {
  const struct cuda_filling *of;
  struct workers *movers;                /* NULL: the caller alone */
  size_t each, shares;                   /* shares of a piece; of all pieces */
  _Atomic size_t next;                   /* share that nobody has taken yet */
  _Atomic size_t filled[FILLED_AT_ONCE]; /* shares of each piece */
  _Atomic bool stop;                     /* what is left need not be filled */
  bool good;                             /* all was sent */
};

/* False: there is none left. */
static bool fill_share(struct fill *f) {
  const struct cuda_filling *of = f->of;
  size_t share = atomic_fetch_add_explicit(&f->next, 1, memory_order_relaxed);
  if (share >= f->shares || atomic_load_explicit(&f->stop, memory_order_relaxed)) return false;
  size_t piece = share / f->each, at = share % f->each * SHARE, begin = piece * of->piece + at;
  size_t left = of->piece - at < of->bytes - begin ? of->piece - at : of->bytes - begin;
  if (begin < of->bytes)
    memcpy((char *)of->places[piece] + at, of->from + begin, left < SHARE ? left : SHARE);
  atomic_fetch_add_explicit(&f->filled[piece], 1, memory_order_release);
  return true;
}

/* Of the caller: it sends what is there, and else does as the others. */
static void fill_and_send(struct fill *f) {
  unsigned spins = 0;
  f->good = true;
  for (int i = 0; i < f->of->count && f->good; i++) {
    while (atomic_load_explicit(&f->filled[i], memory_order_acquire) < f->each)
      if (!fill_share(f)) workers_relax(f->movers, &spins);
    f->good = f->of->send(f->of->arg, i);
  }
  atomic_store_explicit(&f->stop, true, memory_order_relaxed);
}

static void run_mover(void *arg, int worker) {
  struct fill *f = arg;
  if (worker == 0)
    fill_and_send(f);
  else
    while (fill_share(f)) continue;
}

/* NULL where there is but one core, or no thread to be had: then who asks moves all. Two cores may be one that runs two
 * threads, which together move little more than one; where there are few, all are taken. */
static struct workers *movers_create(void) {
  int cores = cpu_cores(), count = cores / 2 > FEW_CORES ? cores / 2 : FEW_CORES;
  if (count > cores) count = cores;
  if (count > MOST_MOVERS) count = MOST_MOVERS;
  if (count < 2) return NULL;
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct workers *w = workers_create(count, &d);
  arena_destroy(a);
  return w;
}

bool cuda_fill(struct cuda_engine *e, const struct cuda_filling *p) {
  struct fill f = {.of = p, .each = (p->piece + SHARE - 1) / SHARE};
  f.shares = f.each * (size_t)p->count;
  if (p->bytes < FOR_MANY || pthread_mutex_trylock(&e->moving) != 0) {
    fill_and_send(&f);
    return f.good;
  }
  if (!e->movers && !e->no_movers) e->no_movers = (e->movers = movers_create()) == NULL;
  f.movers = e->movers;
  if (f.movers)
    workers_run(f.movers, run_mover, &f);
  else
    fill_and_send(&f);
  pthread_mutex_unlock(&e->moving);
  return f.good;
}

void cuda_close_fill(struct cuda_engine *e) { workers_destroy(e->movers); }

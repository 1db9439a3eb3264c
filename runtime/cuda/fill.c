/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory is filled by several threads: one moves 7 to 10 GB/s, slower than what then travels to the card. */
#include "runtime/cuda/engine.h"
#include "runtime/workers.h"

#include <string.h>

enum { MOST_MOVERS = 4, LEAST_SHARE = 256 << 10, LINE = 64 };

struct fill {
  char *to;
  const char *from;
  size_t bytes, share;
};

static void fill_share(void *arg, int worker) {
  const struct fill *f = arg;
  size_t begin = (size_t)worker * f->share, left = begin < f->bytes ? f->bytes - begin : 0;
  if (left) memcpy(f->to + begin, f->from + begin, left < f->share ? left : f->share);
}

/* NULL where there is but one core, or no thread to be had: then who asks moves all. */
static struct workers *movers_create(void) {
  int count = cpu_cores() < MOST_MOVERS ? cpu_cores() : MOST_MOVERS;
  if (count < 2) return NULL;
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct workers *w = workers_create(count, &d);
  arena_destroy(a);
  return w;
}

void cuda_fill(struct cuda_engine *e, void *to, const void *from, size_t bytes) {
  if (bytes < 2 * LEAST_SHARE || pthread_mutex_trylock(&e->moving) != 0) {
    memcpy(to, from, bytes);
    return;
  }
  if (!e->movers && !e->no_movers) e->no_movers = (e->movers = movers_create()) == NULL;
  size_t count = e->movers ? (size_t)workers_count(e->movers) : 1;
  struct fill f = {to, from, bytes, ((bytes + count - 1) / count + LINE - 1) / LINE * LINE};
  if (e->movers)
    workers_run(e->movers, fill_share, &f);
  else
    fill_share(&f, 0);
  pthread_mutex_unlock(&e->moving);
}

void cuda_close_fill(struct cuda_engine *e) { workers_destroy(e->movers); }

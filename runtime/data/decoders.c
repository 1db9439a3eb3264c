/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share work: see decoders.h. Indices are taken in their order, so whoever meets an error knows that all
 * before it are done or being done. */
#include "runtime/data/decoders.h"

#include "base/thread.h"

#include <pthread.h>
#include <string.h>

enum { MOST = 16 };

struct decoders {
  int count; /* threads of its own */
  pthread_t threads[MOST];
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t begin, done;
  decode_fn *fn;
  void *arg;
  int64_t next, end; /* not begun yet */
  int64_t bad;       /* -1: none */
  int busy;
  bool stop;
};

/* Until none is left. With the lock, which is let go during each call. */
static void work(struct decoders *t) {
  while (t->next < t->end) {
    int64_t index = t->next++;
    t->busy++;
    pthread_mutex_unlock(&t->lock);
    bool good = t->fn(t->arg, index);
    pthread_mutex_lock(&t->lock);
    t->busy--;
    if (good) continue;
    if (t->bad < 0 || index < t->bad) t->bad = index;
    t->end = t->next; /* those before it have been begun */
  }
  if (!t->busy) pthread_cond_broadcast(&t->done);
}

static void *thread_main(void *arg) {
  struct decoders *t = arg;
  pthread_mutex_lock(&t->lock);
  while (!t->stop) {
    work(t);
    if (!t->stop && t->next >= t->end) pthread_cond_wait(&t->begin, &t->lock);
  }
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

struct decoders *decoders_create(struct arena *a, int count, struct diags *d) {
  struct decoders *t = arena_new(a, struct decoders);
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->begin, NULL);
  pthread_cond_init(&t->done, NULL);
  if (count == 0) count = thread_cores();
  if (count > MOST) count = MOST;
  while (t->count < count - 1) {
    int error = thread_start(&t->threads[t->count], thread_main, t);
    if (error) {
      diag_failure(d, LOC_NONE, "cannot start a thread that reads images: %s", strerror(error));
      decoders_destroy(t);
      return NULL;
    }
    t->count++;
  }
  return t;
}

int64_t decoders_run(struct decoders *t, int64_t n, decode_fn *fn, void *arg) {
  pthread_mutex_lock(&t->lock);
  t->fn = fn, t->arg = arg;
  t->next = 0, t->end = n, t->bad = -1;
  pthread_cond_broadcast(&t->begin);
  work(t);
  while (t->busy) pthread_cond_wait(&t->done, &t->lock);
  int64_t bad = t->bad;
  pthread_mutex_unlock(&t->lock);
  return bad;
}

void decoders_destroy(struct decoders *t) {
  if (!t) return;
  pthread_mutex_lock(&t->lock);
  t->stop = true;
  pthread_cond_broadcast(&t->begin);
  pthread_mutex_unlock(&t->lock);
  for (int i = 0; i < t->count; i++) pthread_join(t->threads[i], NULL);
  pthread_cond_destroy(&t->done);
  pthread_cond_destroy(&t->begin);
  pthread_mutex_destroy(&t->lock);
}

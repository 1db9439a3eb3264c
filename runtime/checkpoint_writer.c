/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that writes checkpoints: it takes what waits, and waits itself where nothing does. */
#include "runtime/checkpoint_writer.h"

#include "base/thread.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

struct pending_save {
  struct arena *owner; /* NULL: none */
  const char *path;
  const struct checkpoint *checkpoint;
};

struct checkpoint_writer {
  pthread_t thread;
  bool started;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t come, done;
  struct pending_save waiting;
  struct arena *spare; /* memory of a checkpoint that is written: pages that the system has given already */
  bool busy, stop, failed;
  char message[512];
};

void checkpoint_writer_give(struct checkpoint_writer *w, struct arena *a) {
  if (!a) return;
  arena_reset(a);
  pthread_mutex_lock(&w->lock);
  struct arena *old = w->spare;
  w->spare = a;
  pthread_mutex_unlock(&w->lock);
  arena_destroy(old);
}

struct arena *checkpoint_writer_arena(struct checkpoint_writer *w) {
  pthread_mutex_lock(&w->lock);
  struct arena *a = w->spare;
  w->spare = NULL;
  pthread_mutex_unlock(&w->lock);
  return a ? a : arena_create();
}

/* Writes the job, or says why not. */
static bool write_job(const struct pending_save *j, char *message, size_t size) {
  jmp_buf point, *outer = arena_on_failure(&point);
  const struct checkpoint *c = j->checkpoint;
  struct diags d;
  bool good = false;
  if (setjmp(point)) {
    snprintf(message, size, "cannot save %s: out of memory", j->path);
    good = false;
  } else {
    diags_init(&d, j->owner);
    good = checkpoint_save(j->path, c->entries, c->count, c->texts, c->ntexts, &d);
    if (!good) snprintf(message, size, "%s", d.first ? d.first->message : "the checkpoint cannot be saved");
  }
  arena_on_failure(outer);
  return good;
}

static void *write_all(void *arg) {
  struct checkpoint_writer *w = arg;
  pthread_mutex_lock(&w->lock);
  while (!w->stop || w->waiting.owner) {
    if (!w->waiting.owner) {
      pthread_cond_wait(&w->come, &w->lock);
      continue;
    }
    struct pending_save j = w->waiting;
    char message[sizeof w->message];
    bool skip = w->failed, good;
    w->waiting = (struct pending_save){0};
    w->busy = true;
    pthread_mutex_unlock(&w->lock);
    good = skip || write_job(&j, message, sizeof message);
    checkpoint_writer_give(w, j.owner);
    pthread_mutex_lock(&w->lock);
    w->busy = false;
    if (!good) memcpy(w->message, message, sizeof message);
    w->failed |= !good;
    pthread_cond_broadcast(&w->done);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

struct checkpoint_writer *checkpoint_writer_create(void) {
  struct checkpoint_writer *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->come, NULL);
  pthread_cond_init(&w->done, NULL);
  return w;
}

static void wait_for_place(struct checkpoint_writer *w, const char *path) {
  while (w->waiting.owner && strcmp(w->waiting.path, path) != 0) pthread_cond_wait(&w->done, &w->lock);
}

void checkpoint_writer_put(struct checkpoint_writer *w, struct arena *owner, const char *path,
                           const struct checkpoint *c) {
  struct pending_save j = {owner, path, c}, old;
  if (!w->started) w->started = thread_start(&w->thread, write_all, w) == 0;
  if (!w->started) {
    if (!w->failed) w->failed = !write_job(&j, w->message, sizeof w->message);
    checkpoint_writer_give(w, owner);
    return;
  }
  pthread_mutex_lock(&w->lock);
  wait_for_place(w, path);
  old = w->waiting;
  w->waiting = j;
  pthread_cond_signal(&w->come);
  pthread_mutex_unlock(&w->lock);
  checkpoint_writer_give(w, old.owner);
}

bool checkpoint_writer_failed(struct checkpoint_writer *w) {
  pthread_mutex_lock(&w->lock);
  bool failed = w->failed;
  pthread_mutex_unlock(&w->lock);
  return failed;
}

bool checkpoint_writer_finish(struct checkpoint_writer *w, struct diags *d) {
  pthread_mutex_lock(&w->lock);
  while (w->waiting.owner || w->busy) pthread_cond_wait(&w->done, &w->lock);
  bool failed = w->failed;
  w->failed = false;
  pthread_mutex_unlock(&w->lock);
  if (failed && d) diag_error(d, LOC_NONE, "%s", w->message);
  return !failed;
}

void checkpoint_writer_destroy(struct checkpoint_writer *w) {
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->stop = true;
  pthread_cond_signal(&w->come);
  pthread_mutex_unlock(&w->lock);
  if (w->started) pthread_join(w->thread, NULL);
  pthread_cond_destroy(&w->done);
  pthread_cond_destroy(&w->come);
  pthread_mutex_destroy(&w->lock);
  arena_destroy(w->spare);
  free(w);
}

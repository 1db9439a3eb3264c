/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: one thread copies the rows of coming batches, with others' help where images are decoded, into a ring
 * of buffers; the consumer takes and gives back whole batches. Each slot of the ring goes free -> ready -> held ->
 * free; batch n lies in slot n mod ring. */
#include "runtime/data/loader.h"

#include "base/integer.h"
#include "base/line.h"
#include "base/thread.h"
#include "runtime/data/reader.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A batch of LARGE bytes is worth memory of the options, if they have some. */
enum { RING = 4, RING_LIMIT = 1024, LARGE = 64 << 10 };

enum slot_state { SLOT_FREE, SLOT_READY, SLOT_HELD };

struct slot {
  struct batch batch; /* first: loader_release gets its address */
  struct tensor *columns;
  enum slot_state state;
};

struct loader {
  const struct dataset *dataset;
  struct loader_options options;
  struct shards shards;
  struct loader_cursor cursor; /* of the thread */
  struct decoders *decoders;   /* of the thread; NULL: there are no images */
  struct slot *slots;
  struct content buffers;
  void *given;    /* by the options' memory, in place of buffers; NULL: nothing */
  uint64_t taken; /* batches the consumer took */

  pthread_t thread;
  pthread_mutex_t lock; /* guards what follows, and the slots' states */
  pthread_cond_t ready, freed;
  bool stop, ended, failed;
  struct loader_failure failure;
};

/* --- the thread --- */

/* The next batch's slot once it is free; NULL when the loader is destroyed. */
static struct slot *wait_for_slot(struct loader *l, uint64_t n) {
  struct slot *s = &l->slots[n % (uint64_t)l->options.ring];
  pthread_mutex_lock(&l->lock);
  while (!l->stop && s->state != SLOT_FREE) pthread_cond_wait(&l->freed, &l->lock);
  bool stop = l->stop;
  pthread_mutex_unlock(&l->lock);
  return stop ? NULL : s;
}

static void *prepare_batches(void *arg) {
  struct loader *l = arg;
  bool ended = false, failed = false;
  for (uint64_t n = 0; !ended && !failed; n++) {
    struct slot *s = wait_for_slot(l, n);
    if (!s) break;
    ended = !cursor_next(&l->cursor, &l->shards, &l->options, &s->batch);
    failed = !ended && !batch_gather(l->dataset, &l->shards, &l->options, &s->batch, s->columns, l->decoders,
                                     &l->failure);
    pthread_mutex_lock(&l->lock);
    l->ended = ended;
    l->failed = failed;
    if (!ended && !failed) s->state = SLOT_READY;
    pthread_cond_signal(&l->ready);
    pthread_mutex_unlock(&l->lock);
  }
  return NULL;
}

/* --- the consumer --- */

static bool check_options(struct loader *l, struct arena *a, struct diags *d) {
  const struct dataset *ds = l->dataset;
  struct loader_options *o = &l->options;
  if (o->batch < 1 || o->batch > MAX_ELEMENTS) {
    diag_error(d, LOC_NONE, "the batch size is %lld; it must be at least 1", (long long)o->batch);
    return false;
  }
  if (o->ring == 0) o->ring = RING;
  assert(o->ring >= 1 && o->ring <= RING_LIMIT);
  if (!shards_make(&l->shards, a, ds, o, d)) return false;
  int64_t batches = l->shards.batches;
  if (o->epoch < 0 || o->index < 0 || o->index > batches) {
    diag_error(d, LOC_NONE,
               "cannot go on at epoch %lld, batch %lld: an epoch of %lld rows has %lld batches of %lld; "
               "were the data or the batch size changed?",
               (long long)o->epoch, (long long)o->index, (long long)ds->rows, (long long)batches,
               (long long)o->batch);
    return false;
  }
  return true;
}

/* Divides one block of memory among the columns of all slots. */
static bool alloc_buffers(struct loader *l, struct arena *a, struct diags *d) {
  const struct dataset *ds = l->dataset;
  const struct loader_options *o = &l->options;
  int64_t rows = shards_rows(&l->shards, 0), total = 0; /* the first batch is the largest */
  int64_t *bytes = arena_new_array(a, (size_t)ds->ncolumns, int64_t);
  bool fits = true;
  for (int i = 0; i < ds->ncolumns && fits; i++) {
    fits =
        !__builtin_mul_overflow(type_bytes(&ds->columns[i].row), rows, &bytes[i]) && bytes[i] < INT64_MAX / 4;
    bytes[i] = round_up(bytes[i], CACHE_LINE);
    fits = fits && !__builtin_add_overflow(total, bytes[i], &total);
  }
  if (!fits || __builtin_mul_overflow(total, (int64_t)o->ring, &total) || total > INT64_MAX / 2) {
    diag_error(d, LOC_NONE, "a batch of %lld rows does not fit into memory; use a smaller one",
               (long long)rows);
    return false;
  }
  char *next = NULL;
  if (o->memory.alloc && total / o->ring >= LARGE)
    next = l->given = o->memory.alloc(o->memory.arg, (size_t)total);
  if (next)
    memset(next, 0, (size_t)total);
  else if (content_alloc(&l->buffers, total + CACHE_LINE, "batches", LOC_NONE, d))
    next = l->buffers.map;
  else
    return false;
  for (int s = 0; s < o->ring; s++) {
    l->slots[s].columns = arena_new_array(a, (size_t)ds->ncolumns, struct tensor);
    l->slots[s].batch.columns = l->slots[s].columns;
    for (int i = 0; i < ds->ncolumns; i++) {
      l->slots[s].columns[i].data = next;
      next += bytes[i];
    }
  }
  return true;
}

static bool has_images(const struct dataset *ds) {
  for (int i = 0; i < ds->ncolumns; i++)
    if (ds->columns[i].pieces[0].images) return true;
  return false;
}

/* All but the thread. */
static void release(struct loader *l) {
  decoders_destroy(l->decoders);
  pthread_cond_destroy(&l->freed);
  pthread_cond_destroy(&l->ready);
  pthread_mutex_destroy(&l->lock);
  content_close(&l->buffers);
  if (l->given) l->options.memory.free(l->options.memory.arg, l->given);
}

struct loader *loader_create(struct arena *a, const struct dataset *ds, const struct loader_options *o,
                             struct diags *d) {
  struct loader *l = arena_new(a, struct loader);
  l->dataset = ds;
  l->options = *o;
  if (!check_options(l, a, d)) return NULL;
  for (int i = 0; i < ds->ncolumns; i++)
    assert(ds->columns[i].row.rank < MAX_RANK); /* a batch has one axis more */
  l->cursor = (struct loader_cursor){l->options.epoch, l->options.index};
  l->slots = arena_new_array(a, (size_t)l->options.ring, struct slot);
  if (!alloc_buffers(l, a, d)) return NULL;
  pthread_mutex_init(&l->lock, NULL);
  pthread_cond_init(&l->ready, NULL);
  pthread_cond_init(&l->freed, NULL);
  if (has_images(ds) && !(l->decoders = decoders_create(a, o->decoders, d))) return release(l), NULL;
  int rc = thread_start(&l->thread, prepare_batches, l);
  if (rc == 0) return l;
  diag_failure(d, LOC_NONE, "cannot start the thread that loads data: %s", strerror(rc));
  release(l);
  return NULL;
}

static void report(const struct loader_failure *f, struct diags *d) {
  if (f->system)
    diag_failure(d, f->loc, "%s", f->message);
  else
    diag_error(d, f->loc, "%s", f->message);
}

enum loader_status loader_next(struct loader *l, const struct batch **b, struct diags *d) {
  struct slot *s = &l->slots[l->taken % (uint64_t)l->options.ring];
  pthread_mutex_lock(&l->lock);
  assert(s->state != SLOT_HELD); /* the whole ring is held: nothing could ever come */
  while (s->state != SLOT_READY && !l->ended && !l->failed) pthread_cond_wait(&l->ready, &l->lock);
  bool ready = s->state == SLOT_READY;
  if (ready) s->state = SLOT_HELD;
  enum loader_status status = ready ? LOADER_BATCH : l->failed ? LOADER_ERROR : LOADER_END;
  pthread_mutex_unlock(&l->lock);
  *b = ready ? &s->batch : NULL;
  l->taken += ready;
  if (status == LOADER_ERROR) report(&l->failure, d);
  return status;
}

bool loader_complete(struct loader *l, const struct batch *b, int column, struct diags *d) {
  struct loader_failure failure;
  struct batch all = *b;
  all.first = 0;
  all.end = b->rows;
  bool good = batch_gather_column(&l->dataset->columns[column], &l->shards, &l->options, &all,
                                  b->columns[column].data, NULL, &failure);
  if (!good) report(&failure, d);
  return good;
}

void loader_release(struct loader *l, const struct batch *b) {
  struct slot *s = (struct slot *)b;
  pthread_mutex_lock(&l->lock);
  assert(s->state == SLOT_HELD);
  s->state = SLOT_FREE;
  pthread_cond_signal(&l->freed);
  pthread_mutex_unlock(&l->lock);
}

void loader_destroy(struct loader *l) {
  if (!l) return;
  pthread_mutex_lock(&l->lock);
  l->stop = true;
  pthread_cond_signal(&l->freed);
  pthread_mutex_unlock(&l->lock);
  pthread_join(l->thread, NULL);
  release(l);
}

int64_t loader_batches_per_epoch(const struct loader *l) { return l->shards.batches; }
int64_t loader_batch_rows(const struct loader *l, int64_t index) { return shards_rows(&l->shards, index); }

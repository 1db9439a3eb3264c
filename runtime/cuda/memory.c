/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the cards, and bytes that move between it, the host and other cards.
 *
 * From the host: the bytes go into pinned memory at once, from there beside the device's work into a staging
 * place on the card, and only the last leg, within the card, waits for its turn in the device's order. So the
 * next batch travels while the present one is worked on. They go in pieces: one travels while the next ones go
 * into pinned memory. What lies in memory that was pinned for it travels from there. To the host: through pinned
 * memory, in pieces, two on their way. Between cards that do not reach each other's memory: likewise. */
#include "runtime/cuda/engine.h"

#include "base/integer.h"
#include "base/line.h"

#include <string.h>

enum {
  PIECE = 1 << 20,  /* bytes that move at once */
  SMALL = 32 << 10, /* from the host: goes straight to its place */
  HUGE = 4 << 20,   /* likewise, of what is pinned already */
  KEPT = 64 << 20,  /* memory of the host that is no larger stays pinned: evaluations come again and again */
  MAX_SLOTS = 64,   /* of a ring; made on need */
  MAX_HUGE = 16,    /* of the one for what is pinned already */
};

/* --- memory --- */

void *cuda_alloc(void *self, int device, size_t bytes) {
  struct cuda_engine *e = self;
  CUdeviceptr data = 0;
  cuda_come_in();
  if (!cuda_use(e, device) || cuda_failed(e)) return NULL;
  CUresult r = cuda.cuMemAlloc(&data, bytes ? bytes : 1);
  if (r == CUDA_ERROR_OUT_OF_MEMORY) return NULL;
  return cuda_check(e, device, "cuMemAlloc", r) ? (void *)(uintptr_t)data
                                                : NULL; /* NOLINT: an address there */
}

void cuda_free(void *self, int device, void *data, size_t bytes) {
  struct cuda_engine *e = self;
  (void)bytes;
  if (!data) return;
  /* After a failure its card may no longer follow those that read it. */
  cuda_wait(e, cuda_failed(e) ? NULL : e->devices[device].card);
  if (cuda_lost(e)) return;
  cuda.cuCtxSetCurrent(e->devices[device].card->context);
  cuda_check(e, device, "cuMemFree", cuda.cuMemFree(cuda_address(data)));
  cuda_come_in();
}

bool cuda_free_memory(void *self, int device, size_t *available, size_t *total) {
  struct cuda_engine *e = self;
  cuda_come_in();
  return cuda_use(e, device) && cuda.cuMemGetInfo(available, total) == CUDA_SUCCESS;
}

void cuda_no_work_space(struct cuda_engine *e, int device, size_t bytes, struct diags *d) {
  size_t available = 0, total = 0;
  if (!cuda_status(e, d)) return;
  cuda_free_memory(e, device, &available, &total);
  diag_error(d, LOC_NONE, "no memory for the work space: %zu bytes are wanted, and %zu of %zu are free on %s",
             bytes, available, total, e->devices[device].text);
}

/* What it outgrows stays: recordings hold its address. */
bool cuda_scratch(struct cuda_engine *e, int device, enum cuda_scratch_use use, size_t bytes,
                  struct diags *d) {
  struct cuda_device *dev = &e->devices[device];
  if (dev->scratch[use].bytes >= bytes) return true;
  struct cuda_outgrown *old = arena_new(e->arena, struct cuda_outgrown);
  size_t size = 2 * dev->scratch[use].bytes > bytes ? 2 * dev->scratch[use].bytes : bytes;
  void *data = cuda_alloc(e, device, size);
  if (!data) {
    cuda_no_work_space(e, device, size, d);
    return false;
  }
  if (dev->scratch[use].data) {
    *old = (struct cuda_outgrown){dev->scratch[use].data, dev->outgrown};
    dev->outgrown = old;
  }
  dev->scratch[use].data = cuda_address(data);
  dev->scratch[use].bytes = size;
  return true;
}

static bool move(struct cuda_engine *e, int device, CUstream stream, const void *to, const void *from,
                 size_t bytes) {
  return CUDA(e, device, cuMemcpyAsync, cuda_address(to), cuda_address(from), bytes, stream);
}

static bool open_pieces(struct cuda_engine *e, int from, int to, struct cuda_pieces *p) {
  for (int i = 0; i < 2; i++) {
    if (!cuda_use(e, from) || !CUDA(e, from, cuMemHostAlloc, &p->pinned[i], PIECE, CU_MEMHOSTALLOC_PORTABLE))
      return false;
    if (!cuda_event_create(e, from, CU_EVENT_DISABLE_TIMING, &p->filled[i]) ||
        !cuda_event_create(e, to, CU_EVENT_DISABLE_TIMING, &p->emptied[i]))
      return false;
  }
  return true;
}

static void close_pieces(const struct cuda_pieces *p) {
  for (int i = 0; i < 2; i++) {
    if (p->pinned[i]) cuda.cuMemFreeHost(p->pinned[i]);
    if (p->filled[i]) cuda.cuEventDestroy(p->filled[i]);
    if (p->emptied[i]) cuda.cuEventDestroy(p->emptied[i]);
  }
}

static void close_deferred(const struct cuda_deferred *deferred) {
  if (deferred->pinned) cuda.cuMemFreeHost(deferred->pinned);
  for (int i = 0; i < DEFERRED_READS; i++)
    if (deferred->arrived[i]) cuda.cuEventDestroy(deferred->arrived[i]);
}

static void close_slot(const struct cuda_slot *s) {
  if (s->pinned) cuda.cuMemFreeHost(s->pinned);
  if (s->staged) cuda.cuMemFree(s->staged);
  if (s->arrived) cuda.cuEventDestroy(s->arrived);
  if (s->done) cuda.cuEventDestroy(s->done);
}

static void close_ring(const struct cuda_ring *r) {
  for (int i = 0; i < r->count; i++) close_slot(&r->slots[i]);
}

static struct cuda_ring make_ring(struct cuda_engine *e, int most, size_t bytes, bool pinned, bool staged) {
  struct cuda_slot *slots = arena_new_array(e->arena, (size_t)most, struct cuda_slot);
  return (struct cuda_ring){.slots = slots, .most = most, .bytes = bytes, .pinned = pinned, .staged = staged};
}

bool cuda_open_memory(struct cuda_engine *e, int device) {
  struct cuda_device *dev = &e->devices[device];
  dev->small = make_ring(e, MAX_SLOTS, SMALL, true, false);
  dev->large = make_ring(e, MAX_SLOTS, PIECE, true, true);
  dev->straight = make_ring(e, MAX_HUGE, HUGE, false, true);
  dev->from = arena_new_array(e->arena, (size_t)e->ndevices, struct cuda_pieces *);
  return open_pieces(e, device, device, &dev->reader);
}

void cuda_close_memory(struct cuda_engine *e, int device) {
  struct cuda_device *dev = &e->devices[device];
  close_pieces(&dev->reader);
  close_deferred(&dev->deferred);
  for (int i = 0; dev->from && i < e->ndevices; i++)
    if (dev->from[i]) close_pieces(dev->from[i]);
  close_ring(&dev->small);
  close_ring(&dev->large);
  close_ring(&dev->straight);
  for (int i = 0; i < SCRATCH_COUNT; i++)
    if (dev->scratch[i].data) cuda.cuMemFree(dev->scratch[i].data);
  for (const struct cuda_outgrown *o = dev->outgrown; o; o = o->next) cuda.cuMemFree(o->data);
}

/* --- memory of the host --- */

static bool fits(const struct cuda_pinned *p, size_t bytes) {
  return p->data && !p->used && p->bytes >= bytes && p->bytes / 2 <= bytes;
}

static struct cuda_pinned *add_pinned(struct cuda_engine *e, size_t bytes) {
  struct cuda_pinned *p = e->pinned;
  void *data = NULL;
  while (p && p->data) p = p->next;
  if (!p) {
    p = arena_new(e->arena, struct cuda_pinned);
    p->next = e->pinned;
    e->pinned = p;
  }
  CUresult r = cuda.cuMemHostAlloc(&data, bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (r == CUDA_ERROR_OUT_OF_MEMORY || !cuda_check(e, e->first, "cuMemHostAlloc", r)) return NULL;
  p->data = data;
  p->bytes = bytes;
  return p;
}

void *cuda_pinned_alloc(void *self, size_t bytes) {
  struct cuda_engine *e = self;
  struct cuda_pinned *p = e->pinned;
  cuda_come_in();
  if (!cuda_use(e, e->first) || cuda_failed(e)) return NULL;
  while (p && !fits(p, bytes)) p = p->next;
  if (!p) p = add_pinned(e, bytes ? bytes : 1);
  if (!p) return NULL;
  p->used = true;
  return p->data;
}

void cuda_pinned_free(void *self, void *data) {
  struct cuda_engine *e = self;
  struct cuda_pinned *p = e->pinned;
  while (p->data != data) p = p->next;
  cuda_wait(e, NULL);
  if (cuda_lost(e)) return;
  p->used = false;
  if (p->bytes <= KEPT) return;
  p->data = NULL;
  cuda.cuCtxSetCurrent(e->devices[e->first].card->context);
  cuda_check(e, e->first, "cuMemFreeHost", cuda.cuMemFreeHost(data));
  cuda_come_in();
}

void cuda_close_pinned(const struct cuda_engine *e) {
  for (const struct cuda_pinned *p = e->pinned; p; p = p->next)
    if (p->data) cuda.cuMemFreeHost(p->data);
}

static bool is_pinned(const struct cuda_engine *e, const char *data, size_t bytes) {
  for (const struct cuda_pinned *p = e->pinned; p; p = p->next)
    if (p->used && data >= p->data && bytes <= p->bytes && data - p->data <= (ptrdiff_t)(p->bytes - bytes))
      return true;
  return false;
}

/* --- from the host --- */

/* One more of the ring, where the next one is due. NULL: it cannot be made, which fails the engine. */
static struct cuda_slot *add_slot(struct cuda_engine *e, int device, struct cuda_ring *r) {
  struct cuda_slot *s = &r->slots[r->count];
  bool good =
      (!r->pinned || CUDA(e, device, cuMemHostAlloc, &s->pinned, r->bytes, CU_MEMHOSTALLOC_PORTABLE)) &&
      (!r->staged || CUDA(e, device, cuMemAlloc, &s->staged, r->bytes)) &&
      cuda_event_create(e, device, CU_EVENT_DISABLE_TIMING, &s->arrived) &&
      cuda_event_create(e, device, CU_EVENT_DISABLE_TIMING, &s->done);
  if (!good) {
    close_slot(s);
    return NULL;
  }
  s->next = r->last ? r->last->next : s;
  if (r->last) r->last->next = s;
  r->count++;
  return s;
}

/* A slot whose bytes have arrived where they belong: the one that has waited longest, else a new one while
 * there is room for it, else the host waits. With `others`, which the caller has taken and is to send first, it does
 * not wait: then NULL may mean that there is none. Else NULL means that something has failed. */
static struct cuda_slot *take_slot(struct cuda_engine *e, int device, struct cuda_ring *r, bool others) {
  struct cuda_slot *s = r->last ? r->last->next : NULL;
  if (cuda_failed(e)) return NULL;
  CUresult ready = s && !s->taken ? cuda.cuEventQuery(s->done) : CUDA_ERROR_NOT_READY;
  if (ready == CUDA_ERROR_NOT_READY && r->count < r->most)
    s = add_slot(e, device, r);
  else if (ready == CUDA_ERROR_NOT_READY)
    s = !others && cuda_await(e, device, s->done) ? s : NULL;
  else if (!cuda_check(e, device, "cuEventQuery", ready))
    s = NULL;
  if (!s) return NULL;
  s->taken = true;
  return r->last = s;
}

static bool write_small(struct cuda_engine *e, int device, char *to, const char *from, size_t bytes) {
  struct cuda_device *dev = &e->devices[device];
  struct cuda_slot *s = take_slot(e, device, &dev->small, false);
  if (!s) return false;
  memcpy(s->pinned, from, bytes);
  s->taken = false;
  return move(e, device, dev->stream, to, s->pinned, bytes) &&
         CUDA(e, device, cuEventRecord, s->done, dev->stream);
}

/* By way of the slot's place on the card. */
static bool send(struct cuda_engine *e, int device, struct cuda_slot *s, const char *to, const char *from,
                 size_t bytes) {
  struct cuda_device *dev = &e->devices[device];
  s->taken = false;
  return CUDA(e, device, cuMemcpyAsync, s->staged, cuda_address(from), bytes, dev->copies) &&
         cuda_order(e, device, dev->stream, device, dev->copies, s->arrived) &&
         CUDA(e, device, cuMemcpyAsync, cuda_address(to), s->staged, bytes, dev->stream) &&
         CUDA(e, device, cuEventRecord, s->done, dev->stream);
}

/* Pieces on their way. */
struct cuda_sending {
  struct cuda_engine *engine;
  int device;
  char *to;
  struct cuda_filling filling;
  struct cuda_slot *slots[FILLED_AT_ONCE];
};

static bool send_piece(void *arg, int piece) {
  const struct cuda_sending *s = arg;
  struct cuda_slot *slot = s->slots[piece];
  size_t at = (size_t)piece * s->filling.piece, left = s->filling.bytes - at;
  return send(s->engine, s->device, slot, s->to + at, slot->pinned,
              left < s->filling.piece ? left : s->filling.piece);
}

/* Of equal length, as far as lines let them be. */
static size_t piece_of(size_t bytes, size_t most) {
  size_t count = (bytes + most - 1) / most, each = (bytes + count - 1) / count;
  return size_round_up(each, CACHE_LINE);
}

static bool write_large(struct cuda_engine *e, int device, char *to, const char *from, size_t bytes) {
  struct cuda_sending s = {.engine = e, .device = device};
  struct cuda_filling *f = &s.filling;
  *f = (struct cuda_filling){.piece = piece_of(bytes, PIECE), .send = send_piece, .arg = &s};
  for (size_t at = 0; at < bytes; at += f->bytes) {
    f->count = 0;
    for (f->bytes = 0; f->count < FILLED_AT_ONCE && at + f->bytes < bytes; f->bytes += f->piece) {
      struct cuda_slot *slot = take_slot(e, device, &e->devices[device].large, f->count > 0);
      if (!slot) break;
      s.slots[f->count] = slot;
      f->places[f->count++] = slot->pinned;
    }
    if (f->bytes > bytes - at) f->bytes = bytes - at;
    s.to = to + at;
    f->from = from + at;
    if (f->count == 0 || !cuda_fill(e, f)) return false;
  }
  return true;
}

static bool write_straight(struct cuda_engine *e, int device, char *to, const char *from, size_t bytes) {
  struct cuda_device *dev = &e->devices[device];
  size_t piece = piece_of(bytes, HUGE);
  for (size_t at = 0; at < bytes; at += piece) {
    struct cuda_slot *s = take_slot(e, device, &dev->straight, false);
    if (!s || !send(e, device, s, to + at, from + at, bytes - at < piece ? bytes - at : piece)) return false;
    dev->read = s->arrived;
  }
  return true;
}

bool cuda_await_read(struct cuda_engine *e, int device) {
  struct cuda_device *dev = &e->devices[device];
  CUevent read = dev->read;
  dev->read = NULL;
  return !read || cuda_await(e, device, read);
}

bool cuda_write(struct cuda_engine *e, int device, void *to, const void *from, size_t bytes) {
  if (!cuda_use(e, device)) return false;
  e->devices[device].loose = true;
  if (bytes == 0) return true;
  if (bytes <= SMALL) return write_small(e, device, to, from, bytes);
  return (is_pinned(e, from, bytes) ? write_straight : write_large)(e, device, to, from, bytes);
}

/* --- to the host --- */

static bool fetch(struct cuda_engine *e, int device, CUstream stream, int turn, const char *from,
                  size_t bytes) {
  const struct cuda_pieces *p = &e->devices[device].reader;
  return move(e, device, stream, p->pinned[turn], from, bytes) &&
         CUDA(e, device, cuEventRecord, p->filled[turn], stream);
}

/* While one piece is copied out of pinned memory, the next one is on its way. */
static bool read_pieces(struct cuda_engine *e, int device, CUstream stream, char *to, const char *from,
                        size_t bytes) {
  const struct cuda_pieces *p = &e->devices[device].reader;
  size_t size = bytes < PIECE ? bytes : PIECE;
  bool good = cuda_use(e, device) && (bytes == 0 || fetch(e, device, stream, 0, from, size));
  for (int turn = 0; good && bytes > 0; turn ^= 1) {
    size_t next = bytes - size < PIECE ? bytes - size : PIECE;
    if (next > 0) good = fetch(e, device, stream, turn ^ 1, from + size, next);
    good = good && cuda_await(e, device, p->filled[turn]);
    if (good) memcpy(to, p->pinned[turn], size);
    to += size, from += size, bytes -= size, size = next;
  }
  return good;
}

static bool read_bytes(struct cuda_engine *e, int device, CUstream stream, void *to, const void *from,
                       size_t bytes) {
  struct cuda_device *dev = &e->devices[device];
  pthread_mutex_lock(&dev->reading);
  bool good = read_pieces(e, device, stream, to, from, bytes);
  pthread_mutex_unlock(&dev->reading);
  return good;
}

/* Copies are done in their order: one may touch what another device on the same card was given. */
static bool come_after(struct cuda_engine *e, int to, int from) {
  for (int i = e->first; i < e->ndevices; i++)
    if (e->devices[i].loose && i != to && i != from) return cuda_meet(e);
  return true;
}

bool cuda_read_begin(void *self, int device, const void *from, size_t bytes, unsigned *number) {
  struct cuda_engine *e = self;
  struct cuda_device *dev = &e->devices[device];
  struct cuda_deferred *deferred = &dev->deferred;
  unsigned i = 0;
  while (i < DEFERRED_READS && deferred->taken[i]) i++;
  *number = i;
  if (i == DEFERRED_NONE) return true;
  cuda_come_in();
  if (!come_after(e, device, device) || !cuda_use(e, device)) return false;
  if (!deferred->pinned && !CUDA(e, device, cuMemHostAlloc, (void **)&deferred->pinned,
                                 DEFERRED_READS * sizeof *deferred->pinned, CU_MEMHOSTALLOC_PORTABLE))
    return false;
  if (!deferred->arrived[i] && !cuda_event_create(e, device, CU_EVENT_DISABLE_TIMING, &deferred->arrived[i]))
    return false;
  dev->loose = true; /* what is given to other devices next may overwrite it */
  deferred->taken[i] = true;
  return move(e, device, dev->stream, deferred->pinned[i], from, bytes) &&
         CUDA(e, device, cuEventRecord, deferred->arrived[i], dev->stream);
}

bool cuda_read_end(void *self, int device, unsigned number, void *to, size_t bytes) {
  struct cuda_engine *e = self;
  struct cuda_deferred *deferred = &e->devices[device].deferred;
  deferred->taken[number] = false;
  cuda_come_in();
  if (!cuda_use(e, device) || !cuda_await(e, device, deferred->arrived[number])) return false;
  memcpy(to, deferred->pinned[number], bytes);
  return true;
}

/* --- between cards --- */

/* In the order of `stream`, one of the target's; `staging` NULL: they reach each other. Else the source's second
 * stream brings the bytes to the host: what else it has been given comes first. */
static bool move_between(struct cuda_engine *e, const struct cuda_pieces *staging, CUstream stream,
                         int to_device, char *to, int from_device, const char *from, size_t bytes) {
  const struct cuda_device *target = &e->devices[to_device], *source = &e->devices[from_device];
  if (bytes == 0) return !cuda_failed(e);
  if (target->card == source->card)
    return cuda_use(e, to_device) && move(e, to_device, stream, to, from, bytes);
  if (!staging)
    return cuda_use(e, to_device) &&
           CUDA(e, to_device, cuMemcpyPeerAsync, cuda_address(to), target->card->context, cuda_address(from),
                source->card->context, bytes, stream);
  bool good = cuda_order(e, from_device, source->copies, to_device, stream, staging->emptied[0]);
  for (size_t piece = 0; good && bytes > 0; piece++) {
    int turn = piece & 1;
    size_t size = bytes < PIECE ? bytes : PIECE;
    /* Of the first two pieces, earlier copies are done: the target's stream was just waited for, and that knows
     * of those that another of its streams made. */
    good =
        cuda_use(e, from_device) &&
        (piece < 2 || CUDA(e, from_device, cuStreamWaitEvent, source->copies, staging->emptied[turn], 0)) &&
        move(e, from_device, source->copies, staging->pinned[turn], from, size) &&
        cuda_order(e, to_device, stream, from_device, source->copies, staging->filled[turn]) &&
        move(e, to_device, stream, to, staging->pinned[turn], size) &&
        CUDA(e, to_device, cuEventRecord, staging->emptied[turn], stream);
    to += size, from += size, bytes -= size;
  }
  return good;
}

/* NULL where the cards reach each other. */
static bool find_staging(struct cuda_engine *e, int to, int from, struct cuda_pieces **out) {
  struct cuda_device *target = &e->devices[to];
  *out = NULL;
  if (cuda_peers(e, to, from)) return true;
  if (!target->from[from]) {
    struct cuda_pieces *p = arena_new(e->arena, struct cuda_pieces);
    target->from[from] = p; /* at once: what is opened of it is closed with it */
    if (!open_pieces(e, from, to, p)) return false;
  }
  *out = target->from[from];
  return true;
}

bool cuda_copy(void *self, void *to, int to_device, const void *from, int from_device, size_t bytes) {
  struct cuda_engine *e = self;
  cuda_come_in();
  if (!come_after(e, to_device, from_device)) return false;
  if (from_device < 0) return cuda_write(e, to_device, to, from, bytes);
  if (to_device < 0) return read_bytes(e, from_device, e->devices[from_device].stream, to, from, bytes);
  struct cuda_device *target = &e->devices[to_device], *source = &e->devices[from_device];
  struct cuda_pieces *staging;
  if (!find_staging(e, to_device, from_device, &staging)) return false;
  if (target == source) return move_between(e, NULL, target->stream, to_device, to, from_device, from, bytes);
  target->loose = source->loose = true;
  return cuda_order(e, to_device, target->stream, from_device, source->stream, source->met) &&
         move_between(e, staging, target->stream, to_device, to, from_device, from, bytes) &&
         cuda_order(e, from_device, source->stream, to_device, target->stream, target->met);
}

/* --- copies of a plan --- */

struct cuda_transfer {
  struct cuda_engine *engine;
  const struct cuda_pieces *staging;
  CUstream stream; /* between devices */
  int to, from;
  size_t bytes;
};

static void run_write(void *const *args, const void *state) {
  const struct cuda_transfer *t = state;
  cuda_write(t->engine, t->to, args[1], args[0], t->bytes);
}

/* The source has been reached, or was there when the run began: what the device has been given since need not
 * be waited for. */
static void run_read(void *const *args, const void *state) {
  const struct cuda_transfer *t = state;
  read_bytes(t->engine, t->from, t->engine->devices[t->from].copies, args[1], args[0], t->bytes);
}

static void run_between(void *const *args, const void *state) {
  const struct cuda_transfer *t = state;
  move_between(t->engine, t->staging, t->stream, t->to, args[1], t->from, args[0], t->bytes);
}

bool cuda_prepare_copy(void *self, struct arena *a, int to, int from, size_t bytes, struct command *c,
                       struct diags *d) {
  struct cuda_engine *e = self;
  struct cuda_transfer *t = arena_new(a, struct cuda_transfer);
  struct cuda_pieces *staging = NULL;
  cuda_come_in();
  if (to >= 0 && from >= 0 && !find_staging(e, to, from, &staging)) {
    cuda_status(e, d);
    return false;
  }
  CUstream stream = to < 0 ? NULL : to == from ? e->devices[to].stream : e->devices[to].copies;
  *t = (struct cuda_transfer){e, staging, stream, to, from, bytes};
  if (to < 0) e->devices[from].read_by_host = true;
  c->kind = COMMAND_CALL;
  c->call = to < 0 ? run_read : from < 0 ? run_write : run_between;
  c->state = t;
  return true;
}

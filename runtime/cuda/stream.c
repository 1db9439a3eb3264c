/* SPDX-License-Identifier: Apache-2.0 */
/* Order: the streams of a device, marks that others wait for, and the meeting of all devices between two
 * runs. */
#include "runtime/cuda/engine.h"

#include "base/clock.h"

#include <stdio.h>
#include <time.h>

bool cuda_event_create(struct cuda_engine *e, int device, unsigned flags, CUevent *out) {
  return cuda_use(e, device) && CUDA(e, device, cuEventCreate, out, flags);
}

bool cuda_open_streams(struct cuda_engine *e, int device) {
  struct cuda_device *dev = &e->devices[device];
  return cuda_use(e, device) && CUDA(e, device, cuStreamCreate, &dev->stream, CU_STREAM_NON_BLOCKING) &&
         CUDA(e, device, cuStreamCreate, &dev->copies, CU_STREAM_NON_BLOCKING) &&
         cuda_event_create(e, device, CU_EVENT_DISABLE_TIMING, &dev->met) &&
         cuda_event_create(e, device, CU_EVENT_DEFAULT, &dev->began) &&
         cuda_event_create(e, device, CU_EVENT_DEFAULT, &dev->ended);
}

void cuda_close_streams(struct cuda_engine *e, int device) {
  struct cuda_device *dev = &e->devices[device];
  if (dev->met) cuda.cuEventDestroy(dev->met);
  if (dev->began) cuda.cuEventDestroy(dev->began);
  if (dev->ended) cuda.cuEventDestroy(dev->ended);
  if (dev->copies) cuda.cuStreamDestroy(dev->copies);
  if (dev->stream) cuda.cuStreamDestroy(dev->stream);
}

bool cuda_order(struct cuda_engine *e, int device, CUstream to, int from_device, CUstream from,
                CUevent event) {
  return cuda_use(e, from_device) && CUDA(e, from_device, cuEventRecord, event, from) &&
         cuda_use(e, device) && CUDA(e, device, cuStreamWaitEvent, to, event, 0);
}

/* The first device waits for all, then all for it: 2n steps instead of n * n. */
bool cuda_meet(struct cuda_engine *e) {
  struct cuda_device *first = &e->devices[e->first];
  bool loose = first->loose;
  for (int i = e->first + 1; i < e->ndevices; i++) {
    struct cuda_device *dev = &e->devices[i];
    if (!dev->card || !dev->loose) continue;
    loose = true;
    if (!cuda_order(e, e->first, first->stream, i, dev->stream, dev->met)) return false;
  }
  if (!loose) return true;
  first->loose = false;
  bool recorded = false;
  for (int i = e->first + 1; i < e->ndevices; i++) {
    struct cuda_device *dev = &e->devices[i];
    if (!dev->card) continue;
    if (!recorded && !(cuda_use(e, e->first) && CUDA(e, e->first, cuEventRecord, first->met, first->stream)))
      return false;
    recorded = true;
    if (!cuda_use(e, i) || !CUDA(e, i, cuStreamWaitEvent, dev->stream, first->met, 0)) return false;
    dev->loose = false;
  }
  return true;
}

/* --- waiting --- */

bool cuda_lost(const struct cuda_engine *e) { return e->lost && *e->lost; }

/* CUDA_ERROR_NOT_READY: not within the limit. */
static CUresult await_limited(struct cuda_engine *e, CUevent event) {
  static const struct timespec pause = {0, 20000};
  uint64_t end = clock_ns() + (uint64_t)e->limit * 1000000000u;
  CUresult r = cuda.cuEventQuery(event);
  while (r == CUDA_ERROR_NOT_READY && clock_ns() < end) {
    nanosleep(&pause, NULL);
    r = cuda.cuEventQuery(event);
  }
  return r;
}

static bool check_limited(struct cuda_engine *e, int device, CUresult r) {
  if (r != CUDA_ERROR_NOT_READY) return cuda_check(e, device, "cuEventQuery", r);
  char text[256];
  int n = snprintf(text, sizeof text, "no answer within %d s", e->limit);
  for (int i = 0; i < e->ndevices && n < (int)sizeof text; i++) {
    const struct cuda_device *other = &e->devices[i];
    if (i != device && other->card && cuda.cuEventQuery(other->met) == CUDA_ERROR_NOT_READY)
      n += snprintf(text + n, sizeof text - (size_t)n, ", nor from %s", other->text);
  }
  cuda_fail(e, device, "waiting for copies", text, NULL);
  *e->lost = true;
  return false;
}

bool cuda_await(struct cuda_engine *e, int device, CUevent event) {
  if (!e->limit) return CUDA(e, device, cuEventSynchronize, event);
  return !cuda_failed(e) && check_limited(e, device, await_limited(e, event));
}

static void finish(struct cuda_engine *e, int device, CUstream stream) {
  const struct cuda_device *dev = &e->devices[device];
  if (!e->limit) {
    cuda_check(e, device, "cuStreamSynchronize", cuda.cuStreamSynchronize(stream));
    return;
  }
  if (cuda_lost(e)) return;
  if (cuda_check(e, device, "cuEventRecord", cuda.cuEventRecord(dev->met, stream)))
    check_limited(e, device, await_limited(e, dev->met));
}

/* After a failure too: what still runs must not outlive the memory it works on. */
void cuda_wait(struct cuda_engine *e, const struct cuda_card *card) {
  for (int i = 0; i < e->ndevices; i++) {
    const struct cuda_device *dev = &e->devices[i];
    if (!dev->card || (card && dev->card != card)) continue;
    cuda.cuCtxSetCurrent(dev->card->context);
    if (dev->stream) finish(e, i, dev->stream);
    if (dev->copies) finish(e, i, dev->copies);
  }
  cuda_come_in();
}

/* --- marks --- */

struct follow {
  struct cuda_engine *engine;
  int device;
  CUstream stream;
  CUevent event;
};

static CUstream stream_of(const struct cuda_engine *e, int device, enum queue queue) {
  const struct cuda_device *dev = &e->devices[device];
  return queue == QUEUE_COPIES ? dev->copies : dev->stream;
}

static void run_mark(void *const *args, const void *state) {
  const struct cuda_event *m = state;
  (void)args;
  if (cuda_use(m->engine, m->device)) CUDA(m->engine, m->device, cuEventRecord, m->event, m->stream);
}

static void run_follow(void *const *args, const void *state) {
  const struct follow *f = state;
  (void)args;
  if (cuda_use(f->engine, f->device)) CUDA(f->engine, f->device, cuStreamWaitEvent, f->stream, f->event, 0);
}

bool cuda_mark(void *self, struct arena *a, int device, enum queue queue, struct command *c, void **event,
               struct diags *d) {
  struct cuda_engine *e = self;
  struct cuda_event *m = arena_new(e->arena, struct cuda_event);
  (void)a;
  *m = (struct cuda_event){.engine = e, .device = device, .stream = stream_of(e, device, queue)};
  if (!cuda_event_create(e, device, CU_EVENT_DISABLE_TIMING, &m->event)) {
    cuda_status(e, d);
    return false;
  }
  m->next = e->events;
  e->events = m;
  c->kind = COMMAND_CALL;
  c->call = run_mark;
  c->state = *event = m;
  return true;
}

bool cuda_follow(void *self, struct arena *a, int device, enum queue queue, void *event, struct command *c,
                 struct diags *d) {
  struct cuda_engine *e = self;
  struct follow *f = arena_new(a, struct follow);
  (void)d;
  *f = (struct follow){e, device, stream_of(e, device, queue), ((const struct cuda_event *)event)->event};
  c->kind = COMMAND_CALL;
  c->call = run_follow;
  c->state = f;
  return true;
}

bool cuda_reached(void *event) {
  const struct cuda_event *m = event;
  if (!cuda_use(m->engine, m->device) || cuda_failed(m->engine)) return true;
  CUresult r = cuda.cuEventQuery(m->event);
  if (r == CUDA_ERROR_NOT_READY) return false;
  cuda_check(m->engine, m->device, "cuEventQuery", r);
  return true;
}

/* --- runs --- */

static bool stamp(struct cuda_engine *e, int device, CUevent event) {
  return cuda_use(e, device) && CUDA(e, device, cuEventRecord, event, e->devices[device].stream);
}

bool cuda_begin(void *self, bool timed) {
  struct cuda_engine *e = self;
  cuda_come_in();
  bool good = cuda_meet(e);
  e->timed = timed;
  e->replayed = false;
  for (int i = e->first; i < e->ndevices; i++) {
    if (!e->devices[i].card) continue;
    struct cuda_device *dev = &e->devices[i];
    dev->loose = true;
    if (dev->read_by_host) good = good && cuda_order(e, i, dev->copies, i, dev->stream, dev->met);
    if (timed) good = good && stamp(e, i, e->devices[i].began);
  }
  return good;
}

/* A recorded run is one piece of work of the first device, which the others wait for: each of them took its
 * time. */
bool cuda_end(void *self, bool wait) {
  struct cuda_engine *e = self;
  bool good = !e->replayed || cuda_meet(e);
  for (int i = e->first; i < e->ndevices && e->timed; i++)
    if (e->devices[i].card) good = good && stamp(e, i, e->devices[i].ended);
  good = good && cuda_meet(e);
  if (good && wait) cuda_wait(e, NULL);
  for (int i = e->first; i < e->ndevices; i++)
    if (e->devices[i].card) good = good && cuda_await_read(e, i);
  good = good && !cuda_failed(e);
  if (good) *e->cause_name = 0;
  return good;
}

uint64_t cuda_busy(void *self, int device) {
  struct cuda_engine *e = self;
  const struct cuda_device *dev = &e->devices[device];
  float milliseconds = 0;
  cuda_come_in();
  if (!cuda_use(e, device) || !CUDA(e, device, cuEventElapsedTime, &milliseconds, dev->began, dev->ended))
    return 0;
  return (uint64_t)((double)milliseconds * 1e6);
}

/* --- launches --- */

bool cuda_launch(struct cuda_engine *e, int device, CUfunction function, const struct cuda_launch *l,
                 void **params) {
  return CUDA(e, device, cuLaunchKernel, function, l->grid[0], l->grid[1], l->grid[2], l->block[0],
              l->block[1], l->block[2], 0, e->devices[device].stream, params, NULL);
}

void cuda_run_nothing(void *const *args, const void *state) { (void)args, (void)state; }

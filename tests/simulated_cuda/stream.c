/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, and when what runs.
 *
 * A stream is a queue. Its first operation may run unless it waits for a moment that has not come. Whoever must
 * wait for a stream or an event runs operations until that has come; which ones is drawn each time: only those
 * that it needs, or all others first, or any. Other calls run as much as the mood says, which changes every few
 * calls. So what is not ordered by streams and events runs in every order there is, the least helpful ones
 * included. */
#include "tests/simulated_cuda/simulated.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct CUstream_st **streams; /* also destroyed ones that have work left */
static int nstreams, room;

static enum { HOLD, EAGER, FAVOUR, SOME, MOODS } mood;
static int mood_left;
static CUstream favourite, lazy; /* the lazy one does what somebody needs, and no more */
static int lazy_left;

/* --- work --- */

struct work *work_new(enum work_kind kind, struct CUctx_st *context) {
  struct work *w = calloc(1, sizeof *w);
  w->kind = kind;
  w->users = 1;
  w->device = context->device;
  w->devices = (uint64_t)1 << context->device;
  return w;
}

void work_drop(struct work *w) {
  if (!w || --w->users) return;
  if (w->function) module_release(w->function->module);
  free(w->parameters);
  free(w->argument);
  free(w);
}

const char *work_name(const struct work *w) {
  static const char *const names[] = {"kernel", "copy", "fill", "library call"};
  return names[w->kind];
}

/* Both ends of a copy or fill, when it is asked for and again when it runs. */
static bool range_ok(const struct work *w, uintptr_t address, bool may_be_host) {
  struct allocation *a = memory_find(address, w->bytes);
  if (a && (a->space == HOST ? may_be_host : (bool)(w->devices >> a->space & 1))) return true;
  sim_complain("%s of %zu bytes, simulated GPU %d: %p is %s", work_name(w), w->bytes, w->device,
               (void *)address, memory_describe(address));
  return false;
}

static bool ranges_ok(const struct work *w) {
  if (w->kind == WORK_FILL) return range_ok(w, w->to, false);
  return range_ok(w, w->to, true) && range_ok(w, w->from, true);
}

CUresult work_run(struct work *w) {
  if (sim_contexts[w->device].failed) return CUDA_SUCCESS;
  CUresult r = CUDA_SUCCESS;
  memory_allow(w->devices);
  switch (w->kind) {
  case WORK_KERNEL: r = kernel_run(w); break;
  case WORK_CALL: r = w->call(w->argument); break;
  case WORK_COPY:
  case WORK_FILL:
    if (!ranges_ok(w)) {
      r = CUDA_ERROR_ILLEGAL_ADDRESS;
      break;
    }
    memory_touch(w->to, w->bytes);
    if (w->kind == WORK_FILL)
      memset((void *)w->to, w->value, w->bytes);
    else {
      memory_touch(w->from, w->bytes);
      memmove((void *)w->to, (void *)w->from, w->bytes);
    }
    break;
  }
  if (r) sim_fail(w->device, r);
  return r;
}

/* --- a device that never answers --- */

/* DGC_SIMULATED_STUCK="DEVICE:nth": that piece of work is begun and does not end. */
bool work_stuck(const struct work *w) {
  static long long left = -1; /* pieces that end; -1: not read yet */
  static int device = -1;
  if (left < 0) {
    const char *setting = sim_setting("STUCK", "");
    const char *colon = strchr(setting, ':');
    if (*setting) device = atoi(setting);
    left = colon && atoll(colon + 1) > 0 ? atoll(colon + 1) - 1 : 0;
  }
  if (w->device != device) return false;
  if (left == 0) return true;
  left--;
  return false;
}

/* --- moments --- */

struct moment *moment_new(CUstream s) {
  struct moment *m = calloc(1, sizeof *m);
  m->users = 1;
  m->stream = s;
  return m;
}

void moment_drop(struct moment *m) {
  if (!m || --m->users) return;
  if (m->come) free(m->argument);
  free(m);
}

static bool has_come(struct moment *m) {
  if (!m->done && m->come) m->done = m->come(m->argument);
  return m->done;
}

/* --- running --- */

static bool ready(CUstream s) {
  return s->head && !s->stuck && (s->head->kind != OP_WAIT || has_come(s->head->moment));
}

static void remove_stream(CUstream s) {
  for (int i = 0; i < nstreams; i++)
    if (streams[i] == s) streams[i] = streams[--nstreams];
  if (favourite == s) favourite = NULL;
  if (lazy == s) lazy = NULL;
  object_bury(&s->object);
}

static void op_free(struct op *op) {
  work_drop(op->work);
  moment_drop(op->moment);
  if (op->exec) exec_release(op->exec);
  free(op->missing);
  free(op->ready);
  free(op->finish);
  free(op);
}

/* One operation, or one node of a graph; nothing, if it is one that does not end. The stream may be gone afterwards, if
 * it was destroyed. */
static void step(CUstream s) {
  struct op *op = s->head;
  if (s->clock < op->issued) s->clock = op->issued;
  switch (op->kind) {
  case OP_WORK: {
    s->stuck = work_stuck(op->work);
    if (s->stuck) return;
    uint64_t begin = sim_now();
    work_run(op->work);
    s->clock += sim_now() - begin;
    break;
  }
  case OP_WAIT:
    if (s->clock < op->moment->time) s->clock = op->moment->time;
    break;
  case OP_GRAPH:
    if (!graph_step(s, op)) return;
    break;
  case OP_RECORD: break;
  }
  if (op->kind == OP_GRAPH || op->kind == OP_RECORD) {
    op->moment->time = s->clock;
    op->moment->done = true;
  }
  s->head = op->next;
  if (!s->head) s->tail = NULL;
  op_free(op);
  if (!s->head && !object_is(&s->object, kind_stream)) remove_stream(s);
}

static CUstream random_ready(CUstream except) {
  CUstream chosen = NULL;
  uint64_t seen = 0;
  for (int i = 0; i < nstreams; i++)
    if (streams[i] != except && streams[i] != lazy && ready(streams[i]) && sim_below(++seen) == 0)
      chosen = streams[i];
  return chosen;
}

/* What must run for `s` to go on; NULL: another process, or a device that never answers, which is *stuck. */
static CUstream needed(CUstream s, bool *stuck) {
  *stuck = false;
  while (!ready(s)) {
    *stuck = s->stuck;
    if (s->stuck || s->head->moment->come) return NULL;
    s = s->head->moment->stream;
  }
  return s;
}

/* Does what `s` needs, or does not return. Where that is another process, which may need another stream of this one,
 * something else goes on. */
static void step_needed(CUstream s) {
  bool stuck;
  CUstream next = needed(s, &stuck);
  if (stuck) sim_hang();
  if (next) {
    step(next);
  } else {
    stream_one();
    sched_yield();
  }
}

/* Until the moment has come. */
static void run_until(struct moment *m) {
  enum { ONLY_NEEDED, OTHERS_FIRST, ANY, WAYS };
  int way = sim_delay ? (int)sim_below(WAYS) : ONLY_NEEDED;
  m->users++;
  while (!m->done) {
    CUstream s = way == OTHERS_FIRST ? random_ready(m->stream) : way == ANY ? random_ready(NULL) : NULL;
    if (s)
      step(s);
    else
      step_needed(m->stream);
  }
  moment_drop(m);
}

void stream_some(void) {
  if (sim_delay && mood_left-- <= 0) {
    mood = sim_below(MOODS);
    mood_left = (int)sim_below(24);
    favourite = nstreams ? streams[sim_below((uint64_t)nstreams)] : NULL;
  }
  if (sim_delay && lazy_left-- <= 0) {
    lazy_left = (int)sim_below(400);
    lazy = nstreams && sim_below(2) ? streams[sim_below((uint64_t)nstreams)] : NULL;
  }
  CUstream s;
  switch (sim_delay ? mood : EAGER) {
  case EAGER:
    while ((s = random_ready(NULL))) step(s);
    break;
  case FAVOUR:
    while (favourite && ready(favourite)) step(favourite);
    break;
  case SOME:
    for (uint64_t n = sim_below(4); n && (s = random_ready(NULL)); n--) step(s);
    break;
  default: break;
  }
}

void stream_one(void) {
  CUstream s = lazy && ready(lazy) && sim_below(2) ? lazy : random_ready(NULL);
  if (s) step(s);
}

void streams_finish(int device) {
  for (int i = 0; i < nstreams;) {
    CUstream s = streams[i];
    if (s->context->device == device && s->head) {
      step_needed(s); /* which may remove a stream from the list: look again */
      i = 0;
    } else
      i++;
  }
}

/* --- adding --- */

struct op *stream_push(CUstream s, enum op_kind kind) {
  struct op *op = calloc(1, sizeof *op);
  op->kind = kind;
  op->issued = sim_now();
  if (s->tail)
    s->tail->next = op;
  else
    s->head = op;
  return s->tail = op;
}

CUresult stream_check(CUstream s) {
  if (s && sim_valid(&s->object, kind_stream)) return s->context->failed;
  sim_complain(s ? "a stream is used after its end" : "the NULL stream is not simulated");
  return CUDA_ERROR_INVALID_HANDLE;
}

CUresult stream_add(CUstream s, struct work *w) {
  if (s->capture) return capture_add(s, w);
  stream_push(s, OP_WORK)->work = w;
  stream_some();
  return CUDA_SUCCESS;
}

/* --- entry points: streams --- */

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  CUstream s = calloc(1, sizeof *s);
  s->context = sim_current();
  sim_begin(&s->object, kind_stream, s->context->device);
  if (nstreams == room) streams = realloc(streams, (size_t)(room = 2 * room + 16) * sizeof(CUstream));
  streams[nstreams++] = *stream = s;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuStreamDestroy(CUstream s) {
  CUresult r = sim_enter(__func__, DESTROYS);
  if (r) return r;
  if (!s || !sim_valid(&s->object, kind_stream)) return sim_leave(CUDA_ERROR_INVALID_HANDLE);
  if (s->capture) capture_forget_stream(s);
  object_end(&s->object);
  if (!s->head) remove_stream(s);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream s) {
  CUresult r = sim_enter(__func__, UNSAFE);
  if (r) return r;
  r = stream_check(s);
  if (!r && s->capture) {
    sim_complain("cuStreamSynchronize: the stream is being captured");
    capture_forget_stream(s);
    r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (r) return sim_leave(r);
  if (s->head) {
    struct moment *m = stream_push(s, OP_RECORD)->moment = moment_new(s);
    m->users++;
    run_until(m);
    moment_drop(m);
  }
  return sim_leave(s->context->failed);
}

/* --- entry points: events --- */

static CUresult event_check(CUevent e) {
  if (e && sim_valid(&e->object, kind_event)) return CUDA_SUCCESS;
  sim_complain("an event is used after its end");
  return CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  if (flags & ~(unsigned)CU_EVENT_DISABLE_TIMING) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  CUevent e = calloc(1, sizeof *e);
  e->context = sim_current();
  e->flags = flags;
  sim_begin(&e->object, kind_event, e->context->device);
  *event = e;
  return sim_leave(CUDA_SUCCESS);
}

static void event_clear(CUevent e) {
  moment_drop(e->last);
  free(e->frontier);
  e->last = NULL;
  e->frontier = NULL;
  e->nfrontier = 0;
  e->capture = 0;
}

CUresult cuEventDestroy(CUevent e) {
  CUresult r = sim_enter(__func__, DESTROYS);
  if (r) return r;
  r = event_check(e);
  if (r) return sim_leave(r);
  event_clear(e);
  object_end(&e->object);
  object_bury(&e->object);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuEventRecord(CUevent e, CUstream s) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  r = event_check(e);
  if (!r) r = stream_check(s);
  if (!r && e->context != s->context) {
    sim_complain("cuEventRecord: the event is of device %d, the stream of device %d", e->context->device,
                 s->context->device);
    r = CUDA_ERROR_INVALID_HANDLE;
  }
  if (r) return sim_leave(r);
  event_clear(e);
  if (s->capture) return sim_leave(capture_record(s, e));
  e->last = stream_push(s, OP_RECORD)->moment = moment_new(s);
  e->last->users++;
  stream_some();
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  r = event_check(e);
  if (!r) r = stream_check(s);
  if (!r && flags) r = CUDA_ERROR_INVALID_VALUE;
  if (r) return sim_leave(r);
  if (s->capture || e->capture) return sim_leave(capture_wait(s, e));
  if (e->last && !e->last->done) {
    stream_push(s, OP_WAIT)->moment = e->last;
    e->last->users++;
  }
  stream_some();
  return sim_leave(CUDA_SUCCESS);
}

/* What queries and synchronisations check. */
static CUresult event_host(CUevent e) {
  CUresult r = event_check(e);
  if (!r && e->capture) {
    sim_complain("an event that was last recorded in a capture is no event of the host");
    if (capture_active(e->capture)) capture_invalidate_here();
    r = CUDA_ERROR_CAPTURED_EVENT;
  }
  return r ? r : e->context->failed;
}

CUresult cuEventQuery(CUevent e) {
  CUresult r = sim_enter(__func__, UNSAFE);
  if (r) return r;
  r = event_host(e);
  if (r || !e->last || e->last->done) return sim_leave(r);
  /* A caller that asks often enough gets there. */
  CUstream s;
  bool stuck;
  for (uint64_t n = sim_below(4); n && !e->last->done; n--)
    if ((s = sim_below(2) ? random_ready(NULL) : needed(e->last->stream, &stuck))) step(s);
  if (e->context->failed) return sim_leave(e->context->failed);
  return sim_leave(e->last->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventSynchronize(CUevent e) {
  CUresult r = sim_enter(__func__, UNSAFE);
  if (r) return r;
  r = event_host(e);
  if (r || !e->last) return sim_leave(r);
  run_until(e->last);
  return sim_leave(e->context->failed);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  r = event_host(begin);
  if (!r) r = event_host(end);
  if (r) return sim_leave(r);
  if ((begin->flags | end->flags) & CU_EVENT_DISABLE_TIMING || begin->context != end->context ||
      !begin->last || !end->last) {
    sim_complain("cuEventElapsedTime: events without time, never recorded, or of two devices");
    return sim_leave(CUDA_ERROR_INVALID_HANDLE);
  }
  if (!begin->last->done || !end->last->done) return sim_leave(CUDA_ERROR_NOT_READY);
  *milliseconds = (float)((double)(int64_t)(end->last->time - begin->last->time) / 1e6);
  return sim_leave(CUDA_SUCCESS);
}

/* --- entry points: copies --- */

static CUresult add_transfer(CUstream s, struct work *w) {
  if (ranges_ok(w) && w->bytes) return stream_add(s, w);
  CUresult r = w->bytes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  work_drop(w);
  return r;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  r = stream_check(s);
  if (r) return sim_leave(r);
  struct work *w = work_new(WORK_COPY, s->context);
  w->to = (uintptr_t)to;
  w->from = (uintptr_t)from;
  w->bytes = bytes;
  return sim_leave(add_transfer(s, w));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           size_t bytes, CUstream s) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  r = stream_check(s);
  if (r) return sim_leave(r);
  if (!to_context || !from_context || !to_context->users || !from_context->users ||
      (s->context != to_context && s->context != from_context))
    return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  struct allocation *a = memory_find((uintptr_t)to, bytes), *b = memory_find((uintptr_t)from, bytes);
  if (!a || !b || a->space != to_context->device || b->space != from_context->device) {
    sim_complain(
        "cuMemcpyPeerAsync: %zu bytes: the target is %s; the source is not what its context says, or is %s",
        bytes, a ? "fine" : memory_describe((uintptr_t)to), b ? "fine" : memory_describe((uintptr_t)from));
    return sim_leave(CUDA_ERROR_INVALID_VALUE);
  }
  struct work *w = work_new(WORK_COPY, s->context);
  w->devices |= (uint64_t)1 << a->space | (uint64_t)1 << b->space;
  w->to = (uintptr_t)to;
  w->from = (uintptr_t)from;
  w->bytes = bytes;
  return sim_leave(add_transfer(s, w));
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream s) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  r = stream_check(s);
  if (r) return sim_leave(r);
  struct work *w = work_new(WORK_FILL, s->context);
  w->to = (uintptr_t)to;
  w->bytes = bytes;
  w->value = value;
  return sim_leave(add_transfer(s, w));
}

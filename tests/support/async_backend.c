/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/async_backend.h"

#include "ir/graph/graph.h"
#include "runtime/host_memory.h"
#include "tests/support/random.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 32, MAX_ARGS = 32, MAX_MEMORY = 1024 };
#define ASYNC_OFFSET ((uintptr_t)1 << 62)

struct event {
  struct async_device *device;
  uint64_t called, done;     /* how often, under the lock */
  int clock[4][MAX_DEVICES]; /* of the last times; no device is more than two barriers behind another */
  struct event *next;
};

enum work_kind { WORK_CALL, WORK_COPY, WORK_MARK, WORK_FOLLOW };

/* Work given to a device. */
struct work {
  enum work_kind kind;
  struct work *next;
  call_fn *call;
  const void *state;
  int nargs, nwrites; /* the last of the arguments are written */
  void *args[MAX_ARGS];
  size_t bytes; /* COPY */
  void *staged; /* COPY: the source, freed afterwards */
  struct event *event;
  uint64_t turn; /* FOLLOW: the call of the mark that is meant */
};

struct async_backend;

struct async_device {
  struct async_backend *backend;
  int index; /* in the target; -1: not this backend's */
  pthread_t thread;
  pthread_cond_t come; /* what it is to do, or an event that it follows */
  struct work *first, **last;
  bool busy;
  struct rng rng;
  int clock[MAX_DEVICES];
  struct event everything; /* what it was given in earlier runs */
  int marks, arriving;     /* copies from the host, not done yet */
  uint64_t items;
};

struct access {
  uintptr_t address;
  int device, time;
  bool write;
};

struct async_backend {
  pthread_mutex_t lock;
  pthread_cond_t done; /* something that a device was given */
  struct async_device devices[MAX_DEVICES];
  int ndevices;
  void *interp; /* what computes */
  struct event *events;
  void *memory[MAX_MEMORY]; /* that was asked for and not freed; the host's addresses */
  struct rng rng;
  int haste; /* in how many of a hundred cases some devices work when one is given something */
  bool closing, failed;
  int failed_device, calls;
  struct access *accesses; /* so far */
  size_t naccesses, cap;
  struct recording *recording; /* being made */
};

struct recorded {
  int device;
  struct work work;
};

struct recording {
  struct recorded *items;
  size_t count, cap;
};

static struct async_options options;
static struct async_backend *last;
static struct async_counts counts; /* changed by the threads that run plans, one at a time, or under a lock */

void async_configure(struct async_options o) {
  options = o;
  counts = (struct async_counts){0};
}

struct async_counts async_counts(void) {
  return counts;
}

static void *to_far(void *p) { return (void *)((uintptr_t)p + ASYNC_OFFSET); }
static void *to_host(const void *p) { return (void *)((uintptr_t)p - ASYNC_OFFSET); }

/* --- devices --- */

static void record_access(struct async_backend *f, struct async_device *d, const void *address, bool write) {
  struct access now = {(uintptr_t)address, d->index, d->clock[d->index], write};
  for (size_t i = 0; i < f->naccesses; i++) {
    const struct access *a = &f->accesses[i];
    if (a->address == now.address && (a->write || write) && a->device != d->index)
      counts.unordered += a->time > d->clock[a->device];
  }
  if (f->naccesses == f->cap) {
    f->cap = f->cap ? 2 * f->cap : 256;
    f->accesses = realloc(f->accesses, f->cap * sizeof *f->accesses);
  }
  f->accesses[f->naccesses++] = now;
}

static void learn(int *clock, const int *from) {
  for (int i = 0; i < MAX_DEVICES; i++)
    if (from[i] > clock[i]) clock[i] = from[i];
}

static void record_accesses(struct async_backend *f, struct async_device *d, const struct work *w) {
  for (int i = 0; i < w->nargs; i++) record_access(f, d, w->args[i], i >= w->nargs - w->nwrites);
  if (w->staged) record_access(f, d, to_far(w->args[1]), true);
}

static void compute(const struct work *w) {
  if (w->kind == WORK_CALL) {
    void *args[MAX_ARGS];
    for (int i = 0; i < w->nargs; i++) args[i] = to_host(w->args[i]);
    w->call(args, w->state);
  } else if (w->bytes)
    memcpy(w->args[1], w->staged ? w->staged : w->args[0], w->bytes);
}

static bool is_stuck(const struct async_device *d) { return options.stuck == d->index && d->marks >= 2; }

/* Whether some device will never be done. Under the lock. */
static bool hopeless(const struct async_backend *f) {
  return options.stuck >= 0 && is_stuck(&f->devices[options.stuck]);
}

/* Whether the device can do this now. Under the lock. */
static bool ready(const struct async_device *d, const struct work *w) {
  if (d->backend->closing) return true;
  return !is_stuck(d) && (w->kind != WORK_FOLLOW || w->event->done >= w->turn);
}

static void dawdle(struct async_device *d) {
  for (int n = rng_chance(&d->rng, 25) ? rng_below(&d->rng, 4) : 0; n > 0; n--) sched_yield();
}

/* Lets the devices see whether they can go on. Under the lock. */
static void wake_devices(struct async_backend *f) {
  for (int i = 0; i < f->ndevices; i++) pthread_cond_signal(&f->devices[i].come);
}

/* Those that follow the event and now can. Under the lock. */
static void wake_followers(struct async_backend *f, const struct event *e) {
  for (int i = 0; i < f->ndevices; i++) {
    struct async_device *d = &f->devices[i];
    if (d->first && d->first->event == e && ready(d, d->first)) pthread_cond_signal(&d->come);
  }
}

/* The first that it was given. Under the lock, which a thread of its own leaves meanwhile. */
static void work_on(struct async_device *d) {
  struct async_backend *f = d->backend;
  struct work *w = d->first;
  d->first = w->next;
  if (!d->first) d->last = &d->first;
  d->busy = true;
  d->clock[d->index]++;
  d->items++;
  /* what it was given is freed already where a device is lost */
  bool computes = (w->kind == WORK_CALL || w->kind == WORK_COPY) && !hopeless(f);
  if (computes && options.check) record_accesses(f, d, w);
  if (options.threads) {
    pthread_mutex_unlock(&f->lock);
    dawdle(d);
  }
  if (computes && !options.check) compute(w);
  if (options.threads) pthread_mutex_lock(&f->lock);
  if (w->kind == WORK_FOLLOW) learn(d->clock, w->event->clock[w->turn % 4]);
  if (w->kind == WORK_MARK) {
    memcpy(w->event->clock[++w->event->done % 4], d->clock, sizeof d->clock);
    d->marks++;
    wake_followers(f, w->event);
  }
  d->busy = false;
  d->arriving -= w->staged != NULL;
  /* nobody waits for anything else: who is woken takes the lock from those that work */
  if (!d->first || (w->staged && !d->arriving) || hopeless(f)) pthread_cond_broadcast(&f->done);
  free(w->staged);
  free(w);
}

static void *device_main(void *arg) {
  struct async_device *d = arg;
  struct async_backend *f = d->backend;
  pthread_mutex_lock(&f->lock);
  for (;;) {
    while (!f->closing && (!d->first || !ready(d, d->first))) pthread_cond_wait(&d->come, &f->lock);
    if (!d->first) break;
    work_on(d);
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

/* --- devices without threads: they work when the host comes by --- */

/* One of those that can, any of them; false: there is none. Under the lock. */
static bool one_works(struct async_backend *f) {
  struct async_device *can[MAX_DEVICES];
  int n = 0;
  for (int i = 0; i < f->ndevices; i++) {
    struct async_device *d = &f->devices[i];
    if (d->first && ready(d, d->first)) can[n++] = d;
  }
  if (n) work_on(can[rng_below(&f->rng, n)]);
  return n > 0;
}

static void some_work(struct async_backend *f) {
  for (int n = options.threads ? 0 : rng_below(&f->rng, 4); n > 0 && one_works(f); n--) {}
}

/* Until something is done. Under the lock. */
static void await_devices(struct async_backend *f) {
  if (options.threads)
    pthread_cond_wait(&f->done, &f->lock);
  else if (!one_works(f))
    abort(); /* one waits for another, and that one for it */
}

/* --- what the host gives them --- */

/* Gives work to a device, or to the recording. Under the lock. */
static void give(struct async_device *d, const struct work *work) {
  struct async_backend *f = d->backend;
  struct recording *r = f->recording;
  if (r) {
    if (r->count == r->cap) {
      r->cap = r->cap ? 2 * r->cap : 64;
      r->items = realloc(r->items, r->cap * sizeof *r->items);
    }
    r->items[r->count++] = (struct recorded){d->index, *work};
    return;
  }
  struct work *w = malloc(sizeof *w);
  *w = *work;
  w->next = NULL;
  if (w->kind == WORK_MARK) w->event->called++;
  if (w->kind == WORK_FOLLOW) w->turn = w->event->called;
  *d->last = w;
  d->last = &w->next;
  if (d->first == w && ready(d, w)) pthread_cond_signal(&d->come);
  if (rng_chance(&f->rng, f->haste)) some_work(f);
}

/* What a command does; nothing any more after a failure. */
static void call(struct async_device *d, const struct work *w) {
  struct async_backend *f = d->backend;
  pthread_mutex_lock(&f->lock);
  counts.calls += !f->recording;
  if (!f->failed && ++f->calls == options.fail_at) {
    f->failed = true;
    f->failed_device = d->index;
    wake_devices(f);
    pthread_cond_broadcast(&f->done);
  }
  if (!f->failed) give(d, w);
  pthread_mutex_unlock(&f->lock);
}

/* Until the device has done all it was given. Under the lock. */
static void drain(struct async_device *d) {
  while (!hopeless(d->backend) && (d->first || d->busy)) await_devices(d->backend);
}

/* --- hooks --- */

static void async_close(void *self) {
  struct async_backend *f = self;
  pthread_mutex_lock(&f->lock);
  f->closing = true;
  wake_devices(f);
  while (!options.threads && one_works(f)) {}
  pthread_mutex_unlock(&f->lock);
  for (int i = 0; i < f->ndevices; i++)
    if (f->devices[i].index >= 0 && options.threads) pthread_join(f->devices[i].thread, NULL);
  backend_interp.close(f->interp);
  while (f->events) {
    struct event *e = f->events;
    f->events = e->next;
    free(e);
  }
  for (int i = 0; i < f->ndevices; i++) pthread_cond_destroy(&f->devices[i].come);
  pthread_cond_destroy(&f->done);
  pthread_mutex_destroy(&f->lock);
  free(f->accesses);
  free(f);
}

static void *async_open(const struct target *target, struct diags *d) {
  struct async_backend *f = calloc(1, sizeof *f);
  f->interp = backend_interp.open(target, d);
  pthread_mutex_init(&f->lock, NULL);
  pthread_cond_init(&f->done, NULL);
  f->ndevices = target->ndevices;
  f->rng = (struct rng){options.seed};
  f->haste = rng_below(&f->rng, 100);
  last = f;
  for (int i = 0; i < target->ndevices; i++) {
    struct async_device *device = &f->devices[i];
    bool own = strcmp(target->devices[i].name.kind, "gpu") == 0;
    *device = (struct async_device){.backend = f, .index = own ? i : -1, .rng = {options.seed + (uint64_t)i}};
    device->last = &device->first;
    device->everything.device = device;
    pthread_cond_init(&device->come, NULL);
    if (own && options.threads) pthread_create(&device->thread, NULL, device_main, device);
  }
  return f;
}

void async_release(void) {
  pthread_mutex_lock(&last->lock);
  options.stuck = -1;
  wake_devices(last);
  for (int i = 0; i < last->ndevices; i++) drain(&last->devices[i]);
  for (int i = 0; i < MAX_MEMORY; i++) host_free(last->memory[i]);
  pthread_mutex_unlock(&last->lock);
  async_close(last);
}

static struct async_device *device_of(void *self, int device) {
  return &((struct async_backend *)self)->devices[device];
}

static void *async_alloc(void *self, int device, size_t bytes) {
  (void)device;
  struct async_backend *f = self;
  void *p = ++counts.asked == options.no_memory_at ? NULL : host_alloc(bytes);
  int i = 0;
  if (!p) return NULL;
  counts.allocations++;
  while (f->memory[i]) i++;
  f->memory[i] = p;
  return to_far(p);
}

static void async_free(void *self, int device, void *data, size_t bytes) {
  struct async_device *d = device_of(self, device);
  (void)bytes;
  pthread_mutex_lock(&d->backend->lock);
  for (int i = 0; i < d->backend->ndevices; i++) drain(&d->backend->devices[i]); /* another may read it */
  pthread_mutex_unlock(&d->backend->lock);
  counts.allocations--;
  for (int i = 0; i < MAX_MEMORY; i++)
    if (d->backend->memory[i] == to_host(data)) d->backend->memory[i] = NULL;
  host_free(to_host(data));
}

static bool async_copy(void *self, void *to, int to_device, const void *from, int from_device, size_t bytes) {
  struct async_backend *f = self;
  pthread_mutex_lock(&f->lock);
  bool good = !f->failed;
  if (to_device >= 0 && from_device < 0 && bytes && good) {
    struct work w = {.kind = WORK_COPY, .args = {NULL, to_host(to)}, .bytes = bytes, .staged = malloc(bytes)};
    memcpy(w.staged, from, bytes);
    f->devices[to_device].arriving++;
    give(&f->devices[to_device], &w);
  } else if (good) {
    for (int i = 0; i < f->ndevices; i++) drain(&f->devices[i]);
    if (bytes) memcpy(to_device >= 0 ? to_host(to) : to, to_host(from), bytes);
  }
  good = !f->failed;
  pthread_mutex_unlock(&f->lock);
  return good;
}

/* What a command of this backend is about. */
struct state {
  struct async_device *device;
  struct work work;
  int from; /* COPY: -1 = host */
};

static void call_work(void *const *args, const void *state) {
  const struct state *s = state;
  struct work w = s->work;
  if (w.nargs) memcpy(w.args, args, (size_t)w.nargs * sizeof *args);
  if (w.kind == WORK_COPY && !options.check) {
    w.args[1] = to_host(w.args[1]);
    if (s->from >= 0) w.args[0] = to_host(w.args[0]);
  }
  call(s->device, &w);
}

static void set_call(struct command *c, struct arena *a, struct state s) {
  c->kind = COMMAND_CALL;
  c->call = call_work;
  c->state = arena_copy(a, &s, sizeof s);
}

static bool async_prepare(void *self, struct arena *a, const struct step *step, int device, struct command *c,
                          struct diags *d) {
  struct command inner = {0};
  struct async_backend *f = self;
  if (!backend_interp.prepare(f->interp, a, step, device, &inner, d)) return false;
  struct work w = {.kind = WORK_CALL, .call = inner.call, .state = inner.state, .nargs = step->noperands};
  w.nwrites = step->kind == STEP_KERNEL ? step->kernel->noutputs : 1;
  set_call(c, a, (struct state){device_of(self, device), w, 0});
  return true;
}

/* The source has been reached, unless a copy before the run brings it. */
static void copy_to_host(void *const *args, const void *state) {
  const struct state *s = state;
  struct async_backend *f = s->device->backend;
  pthread_mutex_lock(&f->lock);
  while (s->device->arriving && !hopeless(f)) await_devices(f);
  bool good = !f->failed;
  pthread_mutex_unlock(&f->lock);
  if (good) memcpy(args[1], to_host(args[0]), s->work.bytes);
}

static bool async_prepare_copy(void *self, struct arena *a, int to, int from, size_t bytes, struct command *c,
                               struct diags *d) {
  (void)d;
  if (to >= 0) {
    struct work w = {.kind = WORK_COPY, .nargs = 2, .nwrites = 1, .bytes = bytes};
    set_call(c, a, (struct state){device_of(self, to), w, from});
    return true;
  }
  set_call(c, a, (struct state){device_of(self, from), {.bytes = bytes}, from});
  c->call = copy_to_host;
  return true;
}

static bool async_mark(void *self, struct arena *a, int device, enum queue queue, struct command *c,
                       void **event, struct diags *d) {
  struct async_backend *f = self;
  (void)queue; /* there is one */
  struct event *e = calloc(1, sizeof *e);
  (void)d;
  e->device = device_of(self, device);
  e->next = f->events;
  f->events = e;
  set_call(c, a, (struct state){e->device, {.kind = WORK_MARK, .event = e}, 0});
  *event = e;
  return true;
}

static bool async_follow(void *self, struct arena *a, int device, enum queue queue, void *event,
                         struct command *c, struct diags *d) {
  (void)queue, (void)d;
  set_call(c, a, (struct state){device_of(self, device), {.kind = WORK_FOLLOW, .event = event}, 0});
  return true;
}

static bool async_reached(void *event) {
  struct event *e = event;
  struct async_backend *f = e->device->backend;
  pthread_mutex_lock(&f->lock);
  for (int i = 0; f->failed && i < f->ndevices; i++)
    drain(&f->devices[i]); /* the host goes on, and overwrites */
  some_work(f);
  bool reached = f->failed || e->done >= e->called;
  pthread_mutex_unlock(&f->lock);
  return reached;
}

/* All devices go on when all have done what they were given. Under the lock. */
static void give_barrier(struct async_backend *f) {
  for (int i = 0; i < f->ndevices; i++)
    if (f->devices[i].index >= 0)
      give(&f->devices[i], &(struct work){.kind = WORK_MARK, .event = &f->devices[i].everything});
  for (int i = 0; i < f->ndevices; i++)
    for (int k = 0; k < f->ndevices; k++)
      if (f->devices[i].index >= 0 && f->devices[k].index >= 0)
        give(&f->devices[i], &(struct work){.kind = WORK_FOLLOW, .event = &f->devices[k].everything});
}

static bool async_begin(void *self, bool timed) {
  struct async_backend *f = self;
  pthread_mutex_lock(&f->lock);
  for (int i = 0; timed && i < f->ndevices; i++) f->devices[i].items = 0;
  if (!f->failed) give_barrier(f);
  bool good = !f->failed;
  pthread_mutex_unlock(&f->lock);
  return good;
}

static bool async_end(void *self, bool wait) {
  struct async_backend *f = self;
  pthread_mutex_lock(&f->lock);
  if (!f->failed) give_barrier(f);
  for (int i = 0; wait && i < f->ndevices; i++) drain(&f->devices[i]);
  bool good = !f->failed;
  pthread_mutex_unlock(&f->lock);
  return good;
}

static bool async_status(void *self, struct diags *d) {
  struct async_backend *f = self;
  pthread_mutex_lock(&f->lock);
  bool failed = f->failed;
  if (failed)
    diag_error(d, LOC_NONE, "farCall: FAR_ERROR_TEST (made to fail) on device %d", f->failed_device);
  pthread_mutex_unlock(&f->lock);
  return !failed;
}

static void *async_record(void *self, void (*issue)(void *arg), void *arg) {
  struct async_backend *f = self;
  if (!options.recordable) return NULL;
  struct recording *r = calloc(1, sizeof *r);
  f->recording = r;
  issue(arg);
  f->recording = NULL;
  counts.recorded++;
  return r;
}

static bool async_replay(void *self, void *recording) {
  struct async_backend *f = self;
  struct recording *r = recording;
  counts.replayed++;
  for (size_t i = 0; i < r->count; i++) call(&f->devices[r->items[i].device], &r->items[i].work);
  return !f->failed;
}

static void async_forget(void *self, void *recording) {
  struct recording *r = recording;
  (void)self;
  counts.forgotten++;
  free(r->items);
  free(r);
}

static uint64_t async_busy(void *self, int device) { return device_of(self, device)->items; }

const struct backend backend_async = {
    .name = "async",
    .help = "for tests",
    .kind = "gpu",
    .open = async_open,
    .close = async_close,
    .alloc = async_alloc,
    .free = async_free,
    .copy = async_copy,
    .prepare = async_prepare,
    .prepare_copy = async_prepare_copy,
    .mark = async_mark,
    .follow = async_follow,
    .reached = async_reached,
    .begin = async_begin,
    .end = async_end,
    .status = async_status,
    .record = async_record,
    .replay = async_replay,
    .forget = async_forget,
    .busy = async_busy,
};

/* Loading plans and running them. */
#include "runtime/exec.h"

#include <stdalign.h>
#include <string.h>
#include <time.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(DGC_DEBUG)
#define POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define POISON 1
#endif
#endif
#ifndef POISON
#define POISON 0
#endif
/* Reads as NaN, as a large negative integer, and as a bool that is none. */
#define POISON_BYTE 0xff

/* On a line of its own, so that devices that meet do not disturb others. */
struct signal {
  alignas(64) _Atomic uint64_t run;
};

/* A device on its worker. */
struct lane {
  const struct command *commands; /* the last one is COMMAND_END */
  const struct command *next;     /* in the present run */
  int device;
  uint64_t busy;
};

struct exec {
  struct arena *arena;
  const struct plan *plan;
  const struct backend *backend;
  void *self;
  struct store *store;
  struct workers *workers;
  uint64_t caller;     /* the thread that was worker 0 when the backend was told of its threads */
  unsigned generation; /* of the store's arenas when pointers were computed */
  void **constants;    /* per device */
  void **buffers;      /* where each buffer of the plan begins */
  struct lane *lanes;  /* per device, grouped by worker */
  int *first_lane;     /* of each worker; one more entry for the end */
  struct signal *signals;
  uint64_t run;
  _Atomic bool failed;
  struct exec_times *times; /* in a timed run */
};

static void *operand_address(const struct exec *e, const struct operand *o) {
  return (char *)e->buffers[o->buffer] + o->offset;
}

/* Computes where every buffer is, then what every command works on. False without memory. */
static bool bind(struct exec *e, struct diags *d) {
  const struct plan *p = e->plan;
  for (int i = 0; i < p->ndevices; i++)
    if (!store_arena(e->store, i, (size_t)p->devices[i].bytes[REGION_ARENA])) {
      diag_error(d, LOC_NONE, "no memory for the arena of %s: %lld bytes",
                 p->graph->config.target.devices[i].text, (long long)p->devices[i].bytes[REGION_ARENA]);
      return false;
    }
  e->generation = store_generation(e->store);
  for (int i = 0; i < p->nbuffers; i++) {
    const struct plan_buffer *b = &p->buffers[i];
    if (b->region == REGION_ARENA)
      e->buffers[i] = (char *)store_arena(e->store, b->device, 0) + b->offset;
    else if (b->region == REGION_CONSTANT)
      e->buffers[i] = (char *)e->constants[b->device] + b->offset;
    else {
      struct variable *v = store_variable(e->store, b->name, &b->type, b->device, d);
      if (!v) return false;
      e->buffers[i] = v->data;
    }
  }
  for (int l = 0; l < p->ndevices; l++) {
    struct lane *lane = &e->lanes[l];
    for (const struct command *c = lane->commands; c->kind != COMMAND_END; c++) {
      const struct step *s = &p->devices[lane->device].steps[c->step];
      void **args = (void **)c->args;
      for (int i = 0; i < s->noperands; i++) args[i] = operand_address(e, &s->operands[i]);
    }
  }
  return true;
}

static bool load_constants(struct exec *e, struct diags *d) {
  const struct plan *p = e->plan;
  for (int i = 0; i < p->ndevices; i++) {
    e->constants[i] = e->backend->alloc(e->self, i, (size_t)p->devices[i].bytes[REGION_CONSTANT]);
    if (e->constants[i]) continue;
    diag_error(d, LOC_NONE, "no memory for the constants of %s", p->graph->config.target.devices[i].text);
    return false;
  }
  for (int i = 0; i < p->nbuffers; i++) {
    const struct plan_buffer *b = &p->buffers[i];
    if (b->region == REGION_CONSTANT)
      e->backend->copy(e->self, (char *)e->constants[b->device] + b->offset, b->device, b->data, -1,
                       (size_t)b->bytes);
  }
  return true;
}

/* The machine code of `k`; NULL if the backend makes none. */
static kernel_fn *find_kernel(const struct plan *p, kernel_fn *const *compiled, const struct kernel *k) {
  for (int i = 0; compiled && i < p->nkernels; i++)
    if (p->kernels[i] == k) return compiled[i];
  for (int i = 0; compiled && i < p->nkernels; i++)
    if (kernel_equal(p->kernels[i], k)) return compiled[i];
  return NULL;
}

static bool load_step(struct exec *e, const struct step *s, kernel_fn *const *compiled, struct command *c,
                      struct diags *d) {
  c->args = arena_new_array(e->arena, (size_t)s->noperands, void *);
  switch (s->kind) {
  case STEP_SIGNAL:
  case STEP_WAIT:
    c->kind = s->kind == STEP_SIGNAL ? COMMAND_SIGNAL : COMMAND_WAIT;
    c->signal = &e->signals[s->signal].run;
    return true;
  case STEP_COPY:
    c->kind = COMMAND_COPY;
    c->bytes = (size_t)s->bytes;
    return true;
  case STEP_KERNEL:
    c->kind = COMMAND_KERNEL;
    c->kernel = find_kernel(e->plan, compiled, s->kernel);
    c->sizes = s->sizes;
    if (c->kernel) return true;
    break;
  case STEP_MATMUL: break;
  }
  return e->backend->prepare(e->self, e->arena, s, c, d);
}

static bool load_lane(struct exec *e, int device, kernel_fn *const *compiled, struct lane *lane,
                      struct diags *d) {
  const struct device_plan *dp = &e->plan->devices[device];
  struct command *commands = arena_new_array(e->arena, (size_t)dp->nsteps + 1, struct command);
  for (int i = 0; i < dp->nsteps; i++) {
    commands[i].step = (uint32_t)i;
    if (!load_step(e, &dp->steps[i], compiled, &commands[i], d)) return false;
  }
  commands[dp->nsteps].kind = COMMAND_END;
  *lane = (struct lane){.commands = commands, .device = device};
  return true;
}

/* Devices over workers in contiguous blocks. */
static void share_out(struct exec *e) {
  int ndevices = e->plan->ndevices, nworkers = workers_count(e->workers);
  e->first_lane = arena_new_array(e->arena, (size_t)nworkers + 1, int);
  for (int i = 0; i < ndevices; i++) {
    int worker = ndevices <= nworkers ? i : tower_device(i, ndevices, nworkers);
    e->first_lane[worker + 1]++;
  }
  for (int i = 0; i < nworkers; i++) e->first_lane[i + 1] += e->first_lane[i];
}

static bool load(struct exec *e, struct diags *d) {
  const struct plan *p = e->plan;
  kernel_fn **compiled = NULL;
  if (e->backend->compile) {
    compiled = arena_new_array(e->arena, (size_t)p->nkernels, kernel_fn *);
    if (!e->backend->compile(e->self, p->kernels, p->nkernels, compiled, d)) return false;
  }
  void *signals = arena_alloc(e->arena, ((size_t)p->nsignals + 1) * sizeof(struct signal));
  e->signals = (struct signal *)(((uintptr_t)signals + 63) & ~(uintptr_t)63);
  for (int i = 0; i < p->ndevices; i++)
    if (!load_lane(e, i, compiled, &e->lanes[i], d)) return false;
  share_out(e);
  return load_constants(e, d) && bind(e, d);
}

/* A number that no other thread has or had: the system's own may come back when a thread has ended. */
static uint64_t this_thread(void) {
  static _Atomic uint64_t count;
  static _Thread_local uint64_t number;
  if (!number) number = ++count;
  return number;
}

static void enter(void *arg, int worker) {
  struct exec *e = arg;
  (void)worker;
  e->backend->enter(e->self);
}

static void undo_load(void *e) { exec_unload(e); }

struct exec *exec_load(const struct plan *p, const struct backend *backend, void *self, struct store *store,
                       struct workers *workers, struct diags *d) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct exec *e = arena_new(a, struct exec);
  *e = (struct exec){
      .arena = a, .plan = p, .backend = backend, .self = self, .store = store, .workers = workers};
  e->constants = arena_new_array(a, (size_t)p->ndevices, void *);
  arena_unguard(&guard);
  arena_guard(&guard, undo_load, e);
  e->buffers = arena_new_array(a, (size_t)p->nbuffers, void *);
  e->lanes = arena_new_array(a, (size_t)p->ndevices, struct lane);
  e->caller = this_thread();
  if (backend->enter) workers_run(workers, enter, e);
  bool loaded = load(e, d);
  arena_unguard(&guard);
  if (loaded) return e;
  exec_unload(e);
  return NULL;
}

void exec_unload(struct exec *e) {
  if (!e) return;
  for (int i = 0; i < e->plan->ndevices; i++)
    if (e->constants[i])
      e->backend->free(e->self, i, e->constants[i], (size_t)e->plan->devices[i].bytes[REGION_CONSTANT]);
  arena_destroy(e->arena);
}

/* Runs commands from `c` on up to a wait that is not satisfied, or the end. */
KERNEL_CALLER static inline const struct command *advance(const struct command *c, uint64_t run) {
  for (;; c++) {
    switch (c->kind) {
    case COMMAND_KERNEL: c->kernel(c->args, c->sizes); break;
    case COMMAND_CALL: c->call(c->args, c->state); break;
    case COMMAND_COPY: memcpy(c->args[1], c->args[0], c->bytes); break;
    case COMMAND_SIGNAL: atomic_store_explicit(c->signal, run, memory_order_release); break;
    case COMMAND_WAIT:
      if (atomic_load_explicit(c->signal, memory_order_acquire) != run) return c;
      break;
    case COMMAND_END: return c;
    }
  }
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* As advance, one command at a time with a look at the clock around those that work. */
static const struct command *advance_timed(struct lane *lane, const struct command *c, uint64_t run) {
  for (;; c++) {
    struct command one[2] = {*c, {.kind = COMMAND_END}};
    bool works = c->kind == COMMAND_KERNEL || c->kind == COMMAND_CALL || c->kind == COMMAND_COPY;
    uint64_t begin = works ? now() : 0;
    if (c->kind == COMMAND_END || advance(one, run) == one) return c;
    if (works) lane->busy += now() - begin;
  }
}

/* One worker's part of a run: its devices in turn, each as far as it gets. */
static void run_lanes(struct exec *e, int worker) {
  struct lane *first = e->lanes + e->first_lane[worker], *end = e->lanes + e->first_lane[worker + 1];
  uint64_t run = e->run;
  for (struct lane *l = first; l < end; l++) l->next = l->commands;
  unsigned spins = 0;
  for (ptrdiff_t left = end - first; left > 0;) {
    bool moved = false;
    left = end - first;
    for (struct lane *l = first; l < end; l++) {
      const struct command *c = l->next;
      if (c->kind != COMMAND_END) {
        l->next = e->times ? advance_timed(l, c, run) : advance(c, run);
        moved |= l->next != c;
      }
      left -= l->next->kind == COMMAND_END;
    }
    if (moved)
      spins = 0;
    else if (left > 0) {
      if (atomic_load_explicit(&e->failed, memory_order_relaxed)) return;
      workers_relax(e->workers, &spins);
    }
  }
}

/* Only the interpreter asks for memory in a run; if there is none, nobody waits for this worker any longer. */
static void run_worker(void *arg, int worker) {
  struct exec *e = arg;
  jmp_buf point, *outer = arena_on_failure(&point);
  if (setjmp(point))
    atomic_store(&e->failed, true);
  else
    run_lanes(e, worker);
  arena_on_failure(outer);
}

/* Fills what no input occupies with a pattern, so that a value read before it is written is seen. */
static void poison(struct exec *e) {
  const struct plan *p = e->plan;
  for (int device = 0; device < p->ndevices; device++) {
    char *arena = store_arena(e->store, device, 0);
    int64_t at = 0, size = p->devices[device].bytes[REGION_ARENA];
    while (at < size) {
      int64_t gap = size, next = size; /* the nearest input behind `at` */
      for (int i = 0; i < p->ninputs; i++) {
        const struct plan_buffer *b = &p->buffers[p->inputs[i].operand.buffer];
        if (b->device != device || b->region != REGION_ARENA || b->offset + b->bytes <= at ||
            b->offset >= gap)
          continue;
        gap = b->offset > at ? b->offset : at;
        next = b->offset + b->bytes;
      }
      memset(arena + at, POISON_BYTE, (size_t)(gap - at));
      at = next;
    }
  }
}

static void rebind(struct exec *e) {
  if (e->generation != store_generation(e->store))
    bind(e, NULL); /* only grew: everything fits, nothing is new */
}

/* A session may move to another thread between two calls. */
static void enter_caller(struct exec *e) {
  if (e->caller == this_thread()) return;
  e->caller = this_thread();
  if (e->backend->enter) e->backend->enter(e->self);
}

static bool run(struct exec *e) {
  enter_caller(e);
  e->run++;
  atomic_store_explicit(&e->failed, false, memory_order_relaxed);
  workers_run(e->workers, run_worker, e);
  return !atomic_load_explicit(&e->failed, memory_order_relaxed);
}

bool exec_run(struct exec *e) {
  rebind(e);
  if (POISON) poison(e);
  return run(e);
}

bool exec_run_timed(struct exec *e, struct exec_times *t) {
  rebind(e);
  for (int i = 0; i < e->plan->ndevices; i++) e->lanes[i].busy = 0;
  e->times = t;
  uint64_t begin = now();
  bool done = run(e);
  t->wall = now() - begin;
  e->times = NULL;
  for (int i = 0; i < e->plan->ndevices; i++) t->busy[e->lanes[i].device] = e->lanes[i].busy;
  return done;
}

void exec_write(struct exec *e, int input, const void *data) {
  rebind(e);
  const struct plan_value *v = &e->plan->inputs[input];
  int device = e->plan->buffers[v->operand.buffer].device;
  e->backend->copy(e->self, operand_address(e, &v->operand), device, data, -1, (size_t)type_bytes(&v->type));
}

void exec_read(const struct exec *e, int output, void *data) {
  const struct plan_value *v = &e->plan->outputs[output];
  int device = e->plan->buffers[v->operand.buffer].device;
  e->backend->copy(e->self, data, -1, operand_address(e, &v->operand), device, (size_t)type_bytes(&v->type));
}

/* Bytes from the start of an operand to the end of what the step touches of it. */
static int64_t reach(const struct step *s, int operand) {
  if (s->kind == STEP_COPY) return s->bytes;
  if (s->kind == STEP_MATMUL) {
    const struct matmul_size *m = &s->matmul;
    int64_t elements = operand == 0 ? m->m * m->k : operand == 1 ? m->k * m->n : m->m * m->n;
    return m->batch * elements * dtype_size(m->dtype);
  }
  const struct kernel *k = s->kernel;
  const int64_t *strides = s->sizes + k->rank + (int64_t)operand * k->rank;
  int64_t last = 0;
  for (int i = 0; i < k->rank; i++) {
    if (s->sizes[i] == 0) return 0;
    last += (s->sizes[i] - 1) * (strides[i] > 0 ? strides[i] : 0);
  }
  return (last + 1) * dtype_size(k->args[operand].dtype);
}

static void raise_mark(const struct exec *e, const struct operand *o, int64_t bytes, int device,
                       int64_t *mark) {
  const struct plan_buffer *b = &e->plan->buffers[o->buffer];
  if (b->region == REGION_ARENA && b->device == device && bytes > 0 && b->offset + o->offset + bytes > *mark)
    *mark = b->offset + o->offset + bytes;
}

int64_t exec_high_water(const struct exec *e, int device) {
  const struct plan *p = e->plan;
  int64_t mark = 0;
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i < p->devices[d].nsteps; i++) {
      const struct step *s = &p->devices[d].steps[i];
      for (int k = 0; k < s->noperands; k++) raise_mark(e, &s->operands[k], reach(s, k), device, &mark);
    }
  for (int i = 0; i < p->ninputs; i++)
    raise_mark(e, &p->inputs[i].operand, type_bytes(&p->inputs[i].type), device, &mark);
  for (int i = 0; i < p->noutputs; i++)
    if (p->outputs[i].role != OUTPUT_UPDATE)
      raise_mark(e, &p->outputs[i].operand, type_bytes(&p->outputs[i].type), device, &mark);
  return (mark + 63) / 64 * 64;
}

int exec_commands(const struct exec *e, int *signals) {
  int count = 0;
  *signals = 0;
  for (int d = 0; d < e->plan->ndevices; d++)
    for (const struct command *c = e->lanes[d].commands; c->kind != COMMAND_END; c++) {
      count++;
      *signals += c->kind == COMMAND_SIGNAL;
    }
  return count;
}

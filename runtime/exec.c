/* SPDX-License-Identifier: Apache-2.0 */
/* Running plans. */
#include "runtime/exec.h"
#include "base/clock.h"
#include "runtime/exec_internal.h"
#include "runtime/mpi/transport.h"

#include <string.h>

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

/* Runs commands from `c` on up to a wait that is not satisfied, or the end. */
KERNEL_CALLER static inline const struct command *advance(const struct command *c, uint64_t run) {
  for (;; c++) {
    switch (c->kind) {
    case COMMAND_KERNEL: c->kernel(c->args, c->sizes); break;
    case COMMAND_PIECES: break; /* loading leaves none */
    case COMMAND_CALL: c->call(c->args, c->state); break;
    case COMMAND_COPY: memcpy(c->args[1], c->args[0], c->bytes); break;
    case COMMAND_SIGNAL: atomic_store_explicit(c->signal, run, memory_order_release); break;
    case COMMAND_WAIT:
      if (atomic_load_explicit(c->signal, memory_order_acquire) != run) return c;
      break;
    case COMMAND_POLL:
      if (!c->reached(c->event)) return c;
      break;
    case COMMAND_END: return c;
    }
  }
}

static void note_time(struct lane *lane, const struct command *c, struct step_time since) {
  struct step_time now = board_time(lane->board);
  step_time_add(&lane->worked, since, now);
  if (lane->took) step_time_add(&lane->took[c->step], since, now);
}

/* As advance, one command at a time, with a look at the clock around those that work. */
static const struct command *advance_slowly(struct exec *e, struct lane *lane, const struct command *c) {
  for (;; c++) {
    struct command one[2] = {*c, {.kind = COMMAND_END}};
    bool works = c->kind == COMMAND_KERNEL || c->kind == COMMAND_CALL || c->kind == COMMAND_COPY;
    struct step_time begin = {0};
    if (works || e->trace) begin = board_time(lane->board);
    if (c->kind == COMMAND_END || advance(one, e->run) == one) {
      if (e->trace) exec_trace_stand(lane, c);
      return c;
    }
    if (e->trace) exec_trace_command(e, lane, c, begin.clock, works);
    if (works) note_time(lane, c, begin);
  }
}

/* Says where the devices of a worker wait that has nothing to do for long; or that they go on. */
static void say_stands(struct lane *first, const struct lane *end, bool waits) {
  for (struct lane *l = first; l < end; l++) atomic_store(&l->long_wait, waits ? l->next : NULL);
}

/* Whether a device goes on that waits ; if it is the first to go on since `idle`, that was spent waiting for whom
 * it has waited. What it does next is not. */
static bool ends_wait(const struct exec *e, uint64_t *waited, const struct lane *l, uint64_t *idle) {
  struct command one[2] = {*l->next, {.kind = COMMAND_END}};
  if (advance(one, e->run) == one) return false;
  waited[exec_awaited(e, l->device, l->next)] += transport_now(e->transport) - *idle;
  *idle = 0;
  return true;
}

/* A piece of what any device shares; false: there is none. */
static bool help_others(struct exec *e) {
  for (int i = 0; i < e->nlanes; i++)
    if (board_help(e->lanes[i].board)) return true;
  return false;
}

/* What a worker does whose devices have come to their ends, until all have. */
static void help_to_the_end(struct exec *e) {
  unsigned spins = 0;
  while (atomic_load_explicit(&e->unfinished, memory_order_relaxed) > 0 &&
         !atomic_load_explicit(&e->failed, memory_order_relaxed)) {
    if (help_others(e))
      spins = 0;
    else
      workers_relax(e->workers, &spins);
  }
}

/* One worker's part of a run: its devices in turn, each as far as it gets. */
static void run_lanes(struct exec *e, int worker) {
  struct lane *first = e->lanes + e->first_lane[worker], *end = e->lanes + e->first_lane[worker + 1];
  uint64_t run = e->run;
  for (struct lane *l = first; l < end; l++) l->next = l->commands;
  bool slowly = e->observers > 0;
  unsigned spins = 0;
  uint64_t idle = 0; /* since when */
  uint64_t *waited = e->waited ? e->waited + worker * e->transport->size : NULL;
  bool said = false;
  for (ptrdiff_t left = end - first; left > 0;) {
    bool moved = false;
    left = end - first;
    for (struct lane *l = first; l < end; l++) {
      const struct command *c = l->next;
      if (c->kind != COMMAND_END) {
        bool waits = idle > 0;
        if (waits && !ends_wait(e, waited, l, &idle)) continue;
        l->next = slowly ? advance_slowly(e, l, c + waits) : advance(c + waits, run);
        moved |= l->next != c;
      }
      left -= l->next->kind == COMMAND_END;
    }
    if (moved) {
      spins = 0;
      if (said) say_stands(first, end, said = false);
    } else if (left > 0) {
      if (e->shares && help_others(e)) {
        spins = 0;
        continue;
      }
      if (waited && !idle) idle = transport_now(e->transport);
      if (atomic_load_explicit(&e->failed, memory_order_relaxed)) return;
      if (!workers_relax(e->workers, &spins)) continue;
      if (!said) say_stands(first, end, said = true);
      if (exec_give_up(e)) return;
    }
  }
  if (!e->shares) return;
  atomic_fetch_sub_explicit(&e->unfinished, (int)(end - first), memory_order_relaxed);
  if (end > first || worker - e->carriers < e->helpers) help_to_the_end(e);
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
    if (!engines_on_host(e->engines, device)) continue; /* nor of another process */
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
  if (e->generation == store_generation(e->store)) return;
  if (e->recording) e->async[0]->backend->forget(e->async[0]->self, e->recording);
  e->recording = NULL;
  e->runs = 0;
  exec_bind(e, NULL); /* only grew: everything fits, nothing is new */
}

/* A session may move to another thread between two calls. */
static void enter_caller(struct exec *e) {
  if (e->caller == exec_thread()) return;
  e->caller = exec_thread();
  engines_enter(e->engines);
}

static void issue(void *e) { run_worker(e, 0); }

/* The second run is kept as a recording if it can be, and done again from it: the first one has shown that all
 * its calls work. */
static bool replay(struct exec *e) {
  const struct opened *o = e->async[0];
  if (e->unrecordable || e->observers || e->limit || !o->backend->record || e->runs == 0) return false;
  if (!e->recording) e->recording = o->backend->record(o->self, issue, e);
  e->unrecordable = !e->recording;
  e->run += e->unrecordable; /* the attempt has given this run's signals */
  return e->recording && o->backend->replay(o->self, e->recording);
}

/* Work that goes on behind the host is waited for only where devices of the host have a part in it: their next
 * run may overwrite what it reads. */
static bool run_async(struct exec *e) {
  bool good = true;
  for (int i = 0; i < e->nasync; i++)
    good &= e->async[i]->backend->begin(e->async[i]->self, e->times != NULL);
  if (good && e->mixed)
    workers_run(e->workers, run_worker, e);
  else if (good && !replay(e))
    run_worker(e, 0);
  good = good && exec_await_ends(e);
  if (atomic_load_explicit(&e->overdue, memory_order_relaxed)) return false; /* waiting might have no end */
  bool failed = atomic_load_explicit(&e->failed, memory_order_relaxed),
       wait = e->host_values || e->times || failed;
  for (int i = 0; i < e->nasync; i++) good &= e->async[i]->backend->end(e->async[i]->self, wait);
  e->runs += good && !failed;
  return good;
}

static bool run(struct exec *e) {
  if (*e->engines->lost) return false;
  enter_caller(e);
  exec_watch(e);
  e->run++;
  atomic_store_explicit(&e->failed, false, memory_order_relaxed);
  atomic_store_explicit(&e->unfinished, e->nlanes, memory_order_relaxed);
  uint64_t begin = e->waited ? transport_now(e->transport) : 0;
  bool good = true;
  if (e->nasync)
    good = run_async(e);
  else if (e->carriers == 1 && !e->shares)
    run_worker(e, 0);
  else
    workers_run(e->workers, run_worker, e);
  if (e->waited) exec_tally(e, transport_now(e->transport) - begin);
  return good && !atomic_load_explicit(&e->failed, memory_order_relaxed);
}

bool exec_run(struct exec *e) {
  rebind(e);
  if (POISON) poison(e);
  return run(e);
}

bool exec_run_timed(struct exec *e, struct exec_times *t) {
  rebind(e);
  for (int i = 0; i < e->nlanes; i++) {
    e->lanes[i].worked = (struct step_time){0};
    e->lanes[i].board->timed = true;
    e->lanes[i].took = t->steps ? t->steps[e->lanes[i].device] : NULL;
  }
  e->times = t;
  e->observers++;
  uint64_t begin = clock_ns();
  bool done = run(e);
  t->wall = clock_ns() - begin;
  e->times = NULL;
  e->observers--;
  t->worked = 0;
  for (int i = 0; i < e->nlanes; i++) {
    int device = e->lanes[i].device;
    const struct opened *o = e->engines->devices[device];
    e->lanes[i].took = NULL;
    e->lanes[i].board->timed = false;
    t->busy[device] = o->backend->busy ? o->backend->busy(o->self, device) : e->lanes[i].worked.clock;
    t->worked += o->backend->busy ? t->busy[device] : e->lanes[i].worked.threads;
  }
  return done;
}

void exec_status(const struct exec *e, struct diags *d) {
  if (atomic_load_explicit(&e->overdue, memory_order_relaxed)) {
    exec_explain_overdue(e, d);
    return;
  }
  if (engines_status(e->engines, d)) diag_error(d, LOC_NONE, "out of memory");
}

/* Bytes of the input in `data` to the same place. */
static bool write_input(struct exec *e, int input, const char *data, size_t begin, size_t bytes) {
  rebind(e);
  const char *name = e->plan->inputs[input].name;
  for (int i = input; i < e->plan->ninputs; i++) { /* that of this process; in one process, it is the first */
    const struct plan_value *v = &e->plan->inputs[i];
    int device = e->plan->buffers[v->operand.buffer].device;
    if (!engines_here(e->engines, device) || strcmp(v->name, name) != 0) continue;
    char *to = operand_address(e, &v->operand);
    return engines_copy(e->engines, to + begin, device, data + begin, -1, bytes);
  }
  return true; /* the process reads none of it */
}

bool exec_write(struct exec *e, int input, const void *data) {
  return write_input(e, input, data, 0, (size_t)type_bytes(&e->plan->inputs[input].type));
}

bool exec_write_rows(struct exec *e, int input, const void *data, int64_t first, int64_t end) {
  const struct type *t = &e->plan->inputs[input].type;
  size_t row = (size_t)(type_bytes(t) / t->dim[0]);
  return write_input(e, input, data, (size_t)first * row, (size_t)(end - first) * row);
}

/* Where this process finds the output; NULL if it has none. */
static const struct operand *output_operand(const struct exec *e, int output) {
  const struct plan_value *v = &e->plan->outputs[output];
  const struct operand *own = v->copies ? &v->copies[e->transport->rank] : &v->operand;
  return own->buffer < 0 ? NULL : own;
}

bool exec_read(const struct exec *e, int output, void *data) {
  size_t bytes = (size_t)type_bytes(&e->plan->outputs[output].type);
  const struct operand *at = output_operand(e, output);
  if (!at) memset(data, 0, bytes);
  return !at || engines_copy(e->engines, data, -1, operand_address(e, at),
                             e->plan->buffers[at->buffer].device, bytes);
}

bool exec_read_begin(struct exec *e, int output, struct deferred_read *r) {
  const struct plan_value *v = &e->plan->outputs[output];
  const struct operand *at = output_operand(e, output);
  int device = at ? e->plan->buffers[at->buffer].device : 0;
  const struct opened *o = e->engines->devices[device];
  *r = (struct deferred_read){.device = device, .bytes = (size_t)type_bytes(&v->type)};
  if (!at || !o->backend->read_begin) return exec_read(e, output, r->value);
  if (*e->engines->lost ||
      !o->backend->read_begin(o->self, device, operand_address(e, at), r->bytes, &r->number))
    return false;
  if (r->number == DEFERRED_NONE) return exec_read(e, output, r->value);
  r->on = o;
  return true;
}

bool exec_read_end(struct exec *e, const struct deferred_read *r, void *data) {
  if (!r->on) {
    memcpy(data, r->value, r->bytes);
    return true;
  }
  return !*e->engines->lost && r->on->backend->read_end(r->on->self, r->device, r->number, data, r->bytes);
}

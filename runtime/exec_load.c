/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: steps become commands, and commands get their addresses.
 *
 * A device whose work runs behind the host gives a signal when the work before it has been issued. What has to be
 * done, too, before others go on is marked in the queues of the device (ir/plan/queues.h), right behind the step; the
 * steps that need it wait for the mark: a device of the same backend lets its queue do so, any other asks until it is
 * reached. */
#include "ir/graph/graph.h"
#include "ir/ops/scan.h"
#include "ir/plan/posts.h"
#include "runtime/compiled.h"
#include "runtime/cut.h"
#include "runtime/exec.h"
#include "runtime/exec_internal.h"
#include "runtime/host_memory.h"
#include "runtime/scan.h"

#include <string.h>

/* --- addresses --- */

bool exec_bind(struct exec *e, struct diags *d) {
  const struct plan *p = e->plan;
  for (int i = 0; i < p->ndevices; i++)
    if (engines_here(e->engines, i) && !store_arena(e->store, i, (size_t)p->devices[i].bytes[REGION_ARENA])) {
      engines_no_memory(e->engines, i, "the arena", (size_t)p->devices[i].bytes[REGION_ARENA], d);
      return false;
    }
  e->generation = store_generation(e->store);
  for (int i = 0; i < p->nbuffers; i++) {
    const struct plan_buffer *b = &p->buffers[i];
    if (!engines_here(e->engines, b->device) && b->region != REGION_VARIABLE) continue;
    if (b->region == REGION_ARENA)
      e->buffers[i] = (char *)store_arena(e->store, b->device, 0) + b->offset;
    else if (b->region == REGION_CONSTANT)
      e->buffers[i] = (char *)e->constants[b->device] + b->offset;
    else {
      struct stored_variable *v = store_variable(e->store, b->name, &b->type, &b->identity, b->device, d);
      if (!v) return false;
      e->buffers[i] = v->data;
    }
  }
  for (int l = 0; l < e->nlanes; l++) {
    struct lane *lane = &e->lanes[l];
    for (const struct command *c = lane->commands; c->kind != COMMAND_END; c++) {
      const struct step *s = &p->devices[lane->device].steps[c->step];
      void **args = (void **)c->args;
      for (int i = 0; args && i < s->noperands; i++) args[i] = operand_address(e, &s->operands[i]);
      if (args && s->message && !exec_bind_message(e, s, args, d)) return false;
    }
  }
  return true;
}

static bool load_constants(struct exec *e, struct diags *d) {
  const struct plan *p = e->plan;
  for (int i = 0; i < p->ndevices; i++) {
    if (!engines_here(e->engines, i)) continue;
    e->constants[i] = engines_alloc(e->engines, i, (size_t)p->devices[i].bytes[REGION_CONSTANT]);
    if (e->constants[i]) continue;
    engines_no_memory(e->engines, i, "the constants", (size_t)p->devices[i].bytes[REGION_CONSTANT], d);
    return false;
  }
  for (int i = 0; i < p->nbuffers; i++) {
    const struct plan_buffer *b = &p->buffers[i];
    if (!engines_here(e->engines, b->device)) continue;
    if (b->region == REGION_CONSTANT && !engines_copy(e->engines, (char *)e->constants[b->device] + b->offset,
                                                      b->device, b->data, -1, (size_t)b->bytes)) {
      engines_status(e->engines, d);
      return false;
    }
  }
  return true;
}

/* --- commands --- */

/* What loading knows beside the executor. */
struct loading {
  struct exec *e;
  struct diags *diags;
  struct compiled *compiled;
  void **rendezvous; /* by collective */
  /* Of the device whose commands are made: its board, what is shared there so far, and how often what is made now
   * runs. */
  struct board *board;
  struct shared **shared;
  int nshared;
  int64_t times;
  int nnumbered; /* of its steps, see plan_all_steps */
  struct step_time *const *took;
  const char **libraries;
};

static const struct opened *on_device(const struct exec *e, int device) {
  return e->engines->devices[device];
}

static bool load_kernel(struct loading *l, const struct step *s, int device, struct command *c) {
  const struct exec *e = l->e;
  const struct opened *o = on_device(e, device);
  const struct pieces *pieces = compiled_segments(l->compiled, o, s);
  c->kind = COMMAND_KERNEL;
  c->kernel = pieces ? NULL : compiled_kernel(l->compiled, o, s->kernel);
  c->sizes = s->sizes;
  if (!pieces && !c->kernel) return o->backend->prepare(o->self, e->arena, s, device, c, l->diags);
  if (!pieces && o->backend->host && workers_count(e->workers) > 1)
    pieces = cut_kernel(e->arena, s, c->kernel);
  if (pieces) *c = (struct command){COMMAND_PIECES, c->step, .args = c->args, .pieces = pieces};
  return true;
}

/* Between devices of the host the executor copies; else the backend that is not the host's does. */
static bool load_copy(struct loading *l, const struct step *s, int device, struct command *c) {
  const struct exec *e = l->e;
  int from = e->plan->buffers[s->operands[0].buffer].device, to = device;
  c->kind = COMMAND_COPY;
  c->bytes = (size_t)s->bytes;
  bool to_host = engines_on_host(e->engines, to), from_host = engines_on_host(e->engines, from);
  if (to_host && from_host) return true;
  const struct opened *o = on_device(e, to_host ? from : to);
  if (!to_host && !from_host && on_device(e, from) != o) {
    diag_error(l->diags, LOC_NONE, "there is no way to copy from %s to %s", plan_device_text(e->plan, from),
               plan_device_text(e->plan, to));
    return false;
  }
  return o->backend->prepare_copy(o->self, e->arena, to_host ? -1 : to, from_host ? -1 : from, c->bytes, c,
                                  l->diags);
}

/* The device's arrival: see load_complete. */
static bool load_all_reduce(struct loading *l, const struct step *s, int device, struct command *c) {
  const struct opened *o = on_device(l->e, device);
  int rank = collective_rank_of(s->collective, device);
  return o->backend->arrive(o->self, l->e->arena, l->rendezvous[s->collective->number], rank, c, l->diags);
}

static bool load_step(struct loading *l, const struct step *s, int device, struct command *c);

/* What is in pieces goes on the board of its device; what is one piece is a call like others. */
static void load_pieces(struct loading *l, struct command *c) {
  struct exec *e = l->e;
  if (c->kind != COMMAND_PIECES) return;
  l->libraries[c->step] = c->pieces->library;
  struct shared *s = arena_new(e->arena, struct shared);
  *s = (struct shared){c->pieces, c->args, l->board, l->nshared + 1};
  *c = (struct command){COMMAND_CALL, c->step, .call = shared_run_alone, .args = c->args, .state = s};
  int most = 1;
  for (int i = 0; i < s->pieces->nstages; i++)
    if (s->pieces->count[i] > most) most = s->pieces->count[i];
  if (most == 1 || workers_count(e->workers) == 1) return;
  l->shared[++l->nshared] = s;
  c->call = shared_run;
  e->cost += s->pieces->cost * l->times;
  if (most - 1 > e->helpers) e->helpers = most - 1;
}

/* On a device that does not see the host's. */
static bool load_loop_constants(struct loading *l, const struct plan *body, int device, void **out) {
  struct exec *e = l->e;
  struct loop_constants *c = arena_new(e->arena, struct loop_constants);
  *c = (struct loop_constants){.next = e->loop_constants,
                               .device = device,
                               .bytes = (size_t)body->devices[device].bytes[REGION_CONSTANT]};
  c->data = engines_alloc(e->engines, device, c->bytes);
  if (!c->data) {
    engines_no_memory(e->engines, device, "the constants of a loop", c->bytes, l->diags);
    return false;
  }
  e->loop_constants = c;
  *out = c->data;
  for (int i = 0; i < body->nbuffers; i++) {
    const struct plan_buffer *b = &body->buffers[i];
    if (b->region != REGION_CONSTANT || b->device != device) continue;
    if (engines_copy(e->engines, (char *)c->data + b->offset, device, b->data, -1, (size_t)b->bytes))
      continue;
    engines_status(e->engines, l->diags);
    return false;
  }
  return true;
}

/* Within the device, between addresses that are set each time. */
static bool load_loop_copy(struct loading *l, int64_t bytes, int device, struct command *c) {
  const struct opened *o = on_device(l->e, device);
  c->kind = COMMAND_COPY;
  c->bytes = (size_t)bytes;
  c->args = arena_new_array(l->e->arena, 2, void *);
  return o->backend->host || bytes == 0 ||
         o->backend->prepare_copy(o->self, l->e->arena, device, device, c->bytes, c, l->diags);
}

static bool load_loop(struct loading *l, const struct step *s, int device, struct command *c) {
  struct exec *e = l->e;
  const struct plan *body = s->loop->body;
  const struct device_plan *dp = &body->devices[device];
  void *constants = NULL;
  if (!engines_on_host(e->engines, device) && !load_loop_constants(l, body, device, &constants)) return false;
  struct command *commands = arena_new_array(e->arena, (size_t)dp->nsteps + 1, struct command);
  const struct pieces **entered = arena_new_array(e->arena, (size_t)dp->nsteps + 1, const struct pieces *);
  int64_t times = l->times;
  int first = l->nnumbered;
  l->nnumbered += dp->nsteps;
  l->times *= scan_of(s->node).length;
  for (int i = 0; i < dp->nsteps; i++) {
    const struct step *inner = &dp->steps[i];
    commands[i].step = (uint32_t)(first + i);
    if (!(inner->kind == STEP_COPY ? load_loop_copy(l, inner->bytes, device, &commands[i])
                                   : load_step(l, inner, device, &commands[i])))
      return false;
    bool enters = commands[i].kind == COMMAND_PIECES && commands[i].pieces->enter;
    entered[i] = enters ? commands[i].pieces : NULL;
    load_pieces(l, &commands[i]);
  }
  l->times = times;
  struct command *copies = arena_new_array(e->arena, (size_t)body->noutputs + 1, struct command);
  for (int i = 0; i < body->noutputs; i++)
    if (!load_loop_copy(l, type_bytes(&body->graph->outputs[i].node->type), device, &copies[i])) return false;
  c->kind = COMMAND_CALL;
  c->call = loop_run;
  c->state = loop_make(e->arena, s, device, commands, entered, copies, constants, l->board, l->took);
  return true;
}

static bool load_step(struct loading *l, const struct step *s, int device, struct command *c) {
  const struct opened *o = on_device(l->e, device);
  if (s->noperands) c->args = arena_new_array(l->e->arena, (size_t)s->noperands, void *);
  switch (s->kind) {
  case STEP_SIGNAL:
  case STEP_WAIT:
    c->kind = s->kind == STEP_SIGNAL ? COMMAND_SIGNAL : COMMAND_WAIT;
    c->signal = &l->e->signals[s->signal].run;
    return true;
  case STEP_COPY: return load_copy(l, s, device, c);
  case STEP_KERNEL: return load_kernel(l, s, device, c);
  case STEP_SCAN: return load_loop(l, s, device, c);
  case STEP_LEAF:
  case STEP_MODULE: break;
  case STEP_ALL_REDUCE: return load_all_reduce(l, s, device, c);
  case STEP_SEND:
  case STEP_SENT:
  case STEP_RECEIVE: break; /* see exec_load_message */
  }
  return o->backend->prepare(o->self, l->e->arena, s, device, c, l->diags);
}

static struct command *add_command(struct command **next, int step) {
  struct command *c = (*next)++;
  c->step = (uint32_t)step;
  return c;
}

static bool load_waits(struct loading *l, int device, int step, struct command **next) {
  const struct queues *q = l->e->queues;
  const struct opened *o = on_device(l->e, device);
  const struct device_queues *dq = &q->devices[device];
  enum queue queue = step < l->e->plan->devices[device].nsteps ? dq->queue[step] : QUEUE_WORK;
  for (const struct queue_wait *w = dq->waits[step]; w; w = w->next) {
    const struct point *p = &l->e->points[w->point];
    struct command *c = add_command(next, step);
    if (o == p->on) {
      if (!o->backend->follow(o->self, l->e->arena, device, queue, p->event, c, l->diags)) return false;
      continue;
    }
    c->kind = COMMAND_POLL;
    c->reached = p->on->backend->reached;
    c->event = p->event;
  }
  return true;
}

/* Behind the step; -1: at the beginning. */
static void load_mark(const struct loading *l, int device, int step, struct command **next) {
  int point = l->e->queues->devices[device].point[step + 1];
  if (point < 0) return;
  *add_command(next, 0) = l->e->points[point].mark;
  (*next)[-1].step = (uint32_t)(step < 0 ? 0 : step);
}

/* The mark by which the watch knows that the device has come there. */
static void load_arrival(const struct loading *l, int device, int step, struct command **next) {
  const struct plan *p = l->e->plan;
  const struct collective *c = p->devices[device].steps[step].collective;
  *add_command(next, 0) = l->e->arrivals[c->number * p->ndevices + device].mark;
  (*next)[-1].step = (uint32_t)step;
}

/* When all others have arrived, the device goes on. */
static void load_complete(const struct loading *l, int device, struct command **next) {
  const struct command *arrival = *next - 1;
  struct command *c = add_command(next, (int)arrival->step);
  c->kind = COMMAND_POLL;
  c->reached = on_device(l->e, device)->backend->complete;
  c->event = (void *)(uintptr_t)arrival->state;
}

static size_t count_commands(const struct exec *e, int device) {
  int nsteps = e->plan->devices[device].nsteps;
  size_t count = (size_t)nsteps + 1;
  for (int i = 0; i < nsteps; i++) {
    enum step_kind kind = e->plan->devices[device].steps[i].kind;
    bool message = e->plan->devices[device].steps[i].message != NULL;
    count += 2 * (kind == STEP_ALL_REDUCE) + (kind == STEP_RECEIVE) + (message ? MESSAGE_COMMANDS - 1 : 0);
  }
  for (int i = 0; e->queues && i <= nsteps; i++) {
    const struct device_queues *dq = &e->queues->devices[device];
    count += dq->point[i] >= 0;
    for (const struct queue_wait *w = dq->waits[i]; w; w = w->next) count++;
  }
  return count;
}

/* By step: the first of the receives that are posted before it, -1 if there are none; those behind it by `next`. */
struct post_lists {
  int *first, *next;
};

static struct post_lists list_posts(const struct exec *e, int device) {
  const struct device_plan *dp = &e->plan->devices[device];
  const int *posts = plan_posts(e->arena, e->plan, device);
  struct post_lists p = {arena_new_array(e->arena, (size_t)dp->nsteps, int),
                         arena_new_array(e->arena, (size_t)dp->nsteps, int)};
  for (int i = 0; i < dp->nsteps; i++) p.first[i] = -1;
  for (int i = dp->nsteps; i-- > 0;) {
    if (posts[i] == i) continue;
    p.next[i] = p.first[posts[i]];
    p.first[posts[i]] = i;
  }
  return p;
}

static struct board *make_board(struct exec *e, struct shared **all) {
  char *memory = arena_alloc(e->arena, sizeof(struct board) + _Alignof(struct board));
  struct board *b =
      (struct board *)(((uintptr_t)memory + _Alignof(struct board) - 1) & -_Alignof(struct board));
  b->all = (const struct shared *const *)all;
  b->failed = &e->failed;
  b->workers = e->workers;
  return b;
}

static bool load_lane(struct loading *l, int device, struct lane *lane) {
  struct exec *e = l->e;
  const struct device_plan *dp = &e->plan->devices[device];
  l->shared = arena_new_array(e->arena, (size_t)plan_all_steps(e->plan, device) + 2, struct shared *);
  l->board = make_board(e, l->shared);
  l->nshared = 0, l->times = 1;
  l->nnumbered = dp->nsteps, l->took = &lane->took;
  struct command *commands = arena_new_array(e->arena, count_commands(e, device), struct command);
  struct command *next = commands;
  struct post_lists posts = {NULL, NULL};
  if (e->outlets) posts = list_posts(e, device);
  l->libraries = arena_new_array(e->arena, (size_t)plan_all_steps(e->plan, device) + 1, const char *);
  *lane = (struct lane){.commands = commands, .device = device, .board = l->board, .libraries = l->libraries};
  if (e->queues) load_mark(l, device, -1, &next);
  for (int i = 0; i < dp->nsteps; i++) {
    for (int k = e->outlets ? posts.first[i] : -1; k >= 0; k = posts.next[k])
      exec_load_post(e, &dp->steps[k], add_command(&next, i));
    if (e->queues && !load_waits(l, device, i, &next)) return false;
    if (dp->steps[i].kind == STEP_ALL_REDUCE) load_arrival(l, device, i, &next);
    if (dp->steps[i].message ? !exec_load_message(e, device, i, &next, l->diags)
                             : !load_step(l, &dp->steps[i], device, add_command(&next, i)))
      return false;
    load_pieces(l, &next[-1]);
    if (dp->steps[i].kind == STEP_ALL_REDUCE) load_complete(l, device, &next);
    if (e->queues) load_mark(l, device, i, &next);
  }
  if (e->queues && !load_waits(l, device, dp->nsteps, &next)) return false;
  next->kind = COMMAND_END;
  return true;
}

/* NULL: a device of another process, which nobody here waits for in a queue. */
static enum manner manner_of(const struct opened *o) {
  if (!o || o->backend->host || !o->backend->mark) return MANNER_AT_ONCE;
  return o->backend->copy_queue ? MANNER_COPY_QUEUE : MANNER_IN_ORDER;
}

static bool load_queues(struct loading *l) {
  struct exec *e = l->e;
  const struct plan *p = e->plan;
  if (e->nasync == 0) return true;
  enum manner *manners = arena_new_array(e->arena, (size_t)p->ndevices, enum manner);
  for (int d = 0; d < p->ndevices; d++) manners[d] = manner_of(on_device(e, d));
  e->queues = queues_make(e->arena, p, manners);
  e->points = arena_new_array(e->arena, (size_t)e->queues->npoints, struct point);
  for (int i = 0; i < e->queues->npoints; i++) {
    const struct queue_point *q = &e->queues->points[i];
    const struct opened *o = on_device(e, q->device);
    struct point *point = &e->points[i];
    point->on = o;
    point->device = q->device;
    point->after = q->after;
    if (!o->backend->mark(o->self, e->arena, q->device, q->queue, &point->mark, &point->event, l->diags))
      return false;
  }
  return true;
}

/* --- the executor --- */

/* All devices that work behind the host are worker 0's, which has little to do but to issue; those of the host
 * are shared out over the others in contiguous blocks, or over all if there are only such. */
static void share_out(struct exec *e, int *worker_of) {
  int ndevices = e->plan->ndevices, nworkers = workers_count(e->workers), nhosts = 0, host = 0;
  for (int i = 0; i < ndevices; i++) {
    nhosts += engines_on_host(e->engines, i);
    e->nlanes += engines_here(e->engines, i);
  }
  int first = nhosts < e->nlanes && nworkers > 1;
  for (int i = 0; i < ndevices; i++) {
    worker_of[i] = 0;
    if (!engines_on_host(e->engines, i)) continue;
    int n = nworkers - first;
    worker_of[i] = first + (nhosts <= n ? host : tower_device(host, nhosts, n));
    host++;
  }
  e->first_lane = arena_new_array(e->arena, (size_t)nworkers + 1, int);
  for (int i = 0; i < ndevices; i++) e->first_lane[worker_of[i] + 1] += engines_here(e->engines, i);
  for (int i = 0; i < nworkers; i++) e->first_lane[i + 1] += e->first_lane[i];
}

/* Whether threads share commands: where there is enough in them. */
static void settle_sharing(struct exec *e) {
  int nworkers = workers_count(e->workers);
  for (int i = 0; i < nworkers; i++)
    if (e->first_lane[i + 1] > e->first_lane[i]) e->carriers = i + 1;
  if (e->carriers == 0) e->carriers = 1;
  e->shares = nworkers > 1 && pieces_pay(e->cost);
  for (int i = 0; i < e->nlanes; i++) e->lanes[i].board->alone = !e->shares;
}

static bool load_lanes(struct loading *l) {
  struct exec *e = l->e;
  int *worker_of = arena_new_array(e->arena, (size_t)e->plan->ndevices, int);
  share_out(e, worker_of);
  int lane = 0;
  for (int worker = 0; worker < workers_count(e->workers); worker++)
    for (int i = 0; i < e->plan->ndevices; i++)
      if (engines_here(e->engines, i) && worker_of[i] == worker && !load_lane(l, i, &e->lanes[lane++]))
        return false;
  settle_sharing(e);
  return true;
}

/* Which backends have work, and how many of them do theirs behind the host. */
static void find_async(struct exec *e) {
  e->async = arena_new_array(e->arena, (size_t)e->engines->count, const struct opened *);
  int working = 0;
  for (int i = 0; i < e->engines->count; i++) {
    const struct opened *o = &e->engines->all[i];
    bool works = false;
    for (int d = 0; d < e->plan->ndevices; d++) works |= on_device(e, d) == o && e->plan->devices[d].nsteps;
    working += works;
    if (works && !o->backend->host) e->async[e->nasync++] = o;
  }
  e->mixed = working > 1;
  e->host_values = e->plan->nmessages > 0;
  for (int i = 0; i < e->plan->nbuffers; i++)
    e->host_values |= engines_on_host(e->engines, e->plan->buffers[i].device);
}

/* Calls of a run, each turn of a loop with its own; at most as many as are worth recording. */
enum { MAX_RECORDED = 1 << 14 };
static int64_t calls_of(const struct plan *p) {
  int64_t count = 0;
  for (int i = 0; i < p->ndevices; i++)
    for (int k = 0; k < p->devices[i].nsteps && count <= MAX_RECORDED; k++) {
      const struct plan_loop *loop = p->devices[i].steps[k].loop;
      int64_t inner = loop ? calls_of(loop->body) : 1;
      bool many = loop && inner && loop->length > MAX_RECORDED / inner;
      count += many ? MAX_RECORDED + 1 : loop ? inner * loop->length : 1;
    }
  return count;
}

static bool finish(const struct exec *e, struct diags *d) {
  for (int i = 0; i < e->engines->count; i++) {
    const struct opened *o = &e->engines->all[i];
    if (o->backend->finish && !o->backend->finish(o->self, d)) return false;
  }
  return true;
}

static bool load(struct exec *e, struct diags *d) {
  const struct plan *p = e->plan;
  if (p->ndevices > e->engines->target.ndevices) {
    diag_error(d, LOC_NONE, "the plan is for %d devices, and %d are open", p->ndevices,
               e->engines->target.ndevices);
    return false;
  }
  void *signals = arena_alloc(e->arena, ((size_t)p->nsignals + 1) * sizeof(struct signal));
  e->signals = (struct signal *)(((uintptr_t)signals + 63) & ~(uintptr_t)63);
  e->unrecordable = p->ncollectives > 0 || p->nmessages > 0 || calls_of(p) > MAX_RECORDED;
  if (e->transport) exec_make_outlets(e);
  struct loading l = {.e = e, .diags = d};
  find_async(e);
  l.compiled = compile_kernels(e->arena, e->engines, p, d);
  return l.compiled && load_queues(&l) && exec_load_rendezvous(e, &l.rendezvous, d) && load_lanes(&l) &&
         finish(e, d) && load_constants(e, d) && exec_bind(e, d);
}

uint64_t exec_thread(void) {
  static _Atomic uint64_t count;
  static _Thread_local uint64_t number;
  if (!number) number = ++count;
  return number;
}

static void enter(void *arg, int worker) {
  (void)worker;
  engines_enter(((struct exec *)arg)->engines);
}

static void undo_load(void *e) { exec_unload(e); }

struct exec *exec_load(const struct plan *p, const struct engines *engines, struct store *store,
                       struct workers *workers, struct diags *d) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct exec *e = arena_new(a, struct exec);
  *e = (struct exec){.arena = a, .plan = p, .engines = engines, .store = store, .workers = workers};
  e->transport = engines->transport;
  e->constants = arena_new_array(a, (size_t)p->ndevices, void *);
  arena_unguard(&guard);
  arena_guard(&guard, undo_load, e);
  e->buffers = arena_new_array(a, (size_t)p->nbuffers, void *);
  e->lanes = arena_new_array(a, (size_t)p->ndevices, struct lane);
  e->caller = exec_thread();
  workers_run(workers, enter, e);
  bool loaded = load(e, d);
  arena_unguard(&guard);
  if (loaded) return e;
  exec_unload(e);
  return NULL;
}

void exec_unload(struct exec *e) {
  if (!e) return;
  if (*e->engines->lost) {
    host_abandon(e);
    return;
  }
  if (e->recording) e->async[0]->backend->forget(e->async[0]->self, e->recording);
  exec_drop_messages(e);
  for (int i = 0; i < e->plan->ndevices; i++)
    if (e->constants[i])
      engines_free(e->engines, i, e->constants[i], (size_t)e->plan->devices[i].bytes[REGION_CONSTANT]);
  for (const struct loop_constants *c = e->loop_constants; c; c = c->next)
    engines_free(e->engines, c->device, c->data, c->bytes);
  arena_destroy(e->arena);
}

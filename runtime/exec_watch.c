/* SPDX-License-Identifier: Apache-2.0 */
/* The watch over runs: one that does not end within its limit is given up, and the report names who waits for
 * whom.
 *
 * The clock is looked at only where a worker has nothing to do for long. Devices whose work runs behind the
 * host are asked whether they have done all of it, so that a run with a limit ends when they have. */
#include "base/clock.h"
#include "ir/graph/graph.h"
#include "runtime/exec.h"
#include "runtime/exec_internal.h"
#include "runtime/mpi/transport.h"

static bool make_ends(struct exec *e, struct diags *d) {
  e->ends = arena_new_array(e->arena, (size_t)e->plan->ndevices, struct point);
  for (int i = 0; i < e->plan->ndevices; i++) {
    const struct opened *o = e->engines->devices[i];
    struct point *end = &e->ends[e->nends];
    if (!o || o->backend->host || !o->backend->mark || !e->plan->devices[i].nsteps) continue;
    if (!o->backend->mark(o->self, e->arena, i, QUEUE_WORK, &end->mark, &end->event, d)) return false;
    end->on = o;
    end->device = i;
    e->nends++;
  }
  return true;
}

bool exec_set_limit(struct exec *e, double seconds, struct diags *d) {
  e->limit = seconds;
  return seconds == 0 || e->ends || make_ends(e, d);
}

static uint64_t now(const struct exec *e) { return e->transport ? transport_now(e->transport) : clock_ns(); }

void exec_watch(struct exec *e) {
  e->asked = false;
  if (!e->limit) return;
  atomic_store(&e->overdue, false);
  e->clock_read = now(e);
  e->deadline = e->clock_read + (uint64_t)(e->limit * 1e9);
}

/* False, too, where another worker is looking. */
static bool is_overdue(struct exec *e) {
  if (atomic_exchange_explicit(&e->reading_clock, true, memory_order_acquire)) return false;
  uint64_t time = now(e);
  e->deadline += clock_stopped(e->clock_read, time);
  e->clock_read = time;
  bool overdue = time >= e->deadline;
  atomic_store_explicit(&e->reading_clock, false, memory_order_release);
  return overdue;
}

bool exec_give_up(struct exec *e) {
  bool left = e->transport && !exec_answer(e);
  if (!left && (!e->limit || !is_overdue(e))) return false;
  bool first = !atomic_exchange(&e->overdue, true);
  atomic_store(&e->failed, true);
  if (first && e->transport && !left) exec_inquire(e);
  return true;
}

bool exec_await_ends(struct exec *e) {
  unsigned spins = 0;
  if (!e->limit) return true;
  if (atomic_load(&e->overdue)) {
    engines_lose(e->engines);
    return false;
  }
  e->asked = true;
  for (int i = 0; i < e->nends; i++) e->ends[i].mark.call(e->ends[i].mark.args, e->ends[i].mark.state);
  for (int i = 0; i < e->nends; i++)
    while (!e->ends[i].on->backend->reached(e->ends[i].event))
      if (workers_relax(e->workers, &spins) && exec_give_up(e)) {
        engines_lose(e->engines);
        return false;
      }
  return true;
}

/* --- who waits for whom --- */

int exec_giver(const struct exec *e, int signal, int *step) {
  for (int d = 0; d < e->plan->ndevices; d++)
    for (int i = 0; i < e->plan->devices[d].nsteps; i++) {
      const struct step *s = &e->plan->devices[d].steps[i];
      if (s->kind != STEP_SIGNAL || s->signal != signal) continue;
      *step = i;
      return d;
    }
  return -1;
}

/* Where a device stands: at step `step`, number `nsteps` is the end; it waits for signal `waits`, -1 = for
 * none, or for device `missing` at a collective, -1 = for none. */
struct standing {
  int step, waits, missing;
};

static bool waits(struct standing s) { return s.waits >= 0 || s.missing >= 0; }

static const struct lane *lane_of(const struct exec *e, int device) {
  const struct lane *l = e->lanes;
  while (l->device != device) l++;
  return l;
}

/* The signal, step `step` of `device`: issued, and whatever is marked before it is done. */
static bool given(const struct exec *e, int signal, int device, int step) {
  bool done = atomic_load(&e->signals[signal].run) == e->run;
  for (int i = 0; done && e->queues && i < e->queues->npoints; i++) {
    const struct point *p = &e->points[i];
    if (p->device == device && p->after < step) done = p->on->backend->reached(p->event);
  }
  return done;
}

static bool was_given(const struct exec *e, int signal) {
  int step = 0, device = exec_giver(e, signal, &step);
  return device >= 0 && given(e, signal, device, step);
}

/* Whether all is done that comes before the device's part of the collective at step `step`, which it has come to in
 * this run. */
static bool arrived(const struct exec *e, int device, int step) {
  const struct command *next = lane_of(e, device)->next;
  const struct collective *c = e->plan->devices[device].steps[step].collective;
  const struct point *at = &e->arrivals[c->number * e->plan->ndevices + device];
  bool marked = next->kind == COMMAND_END || (int)next->step > step ||
                ((int)next->step == step && next->kind == COMMAND_POLL);
  return marked && at->on->backend->reached(at->event);
}

static int find_part(const struct device_plan *p, const struct collective *c) {
  int step = 0;
  while (p->steps[step].kind != STEP_ALL_REDUCE || p->steps[step].collective != c) step++;
  return step;
}

/* The first of a collective's devices of this process that has not come there, -1 if all have. */
static int missing_device(const struct exec *e, const struct collective *c) {
  for (int i = 0; i < c->count; i++)
    if (engines_here(e->engines, c->devices[i]) &&
        !arrived(e, c->devices[i], find_part(&e->plan->devices[c->devices[i]], c)))
      return c->devices[i];
  return -1;
}

/* A device whose work runs behind the host is asked at its marks; it stands somewhere before the first that it
 * has not reached. One of the host may ask for such a mark some steps behind the wait. */
static struct standing stand(const struct exec *e, int device) {
  const struct device_plan *p = &e->plan->devices[device];
  const struct command *next = lane_of(e, device)->next;
  int end = next->kind == COMMAND_END ? p->nsteps : (int)next->step;
  struct standing at = {0, -1, -1};
  if (next->kind == COMMAND_POLL && end < p->nsteps && p->steps[end].message)
    return (struct standing){end, -1, -1};
  if (engines_on_host(e->engines, device)) at.step = next->kind == COMMAND_POLL ? 0 : end;
  for (int i = at.step; i < p->nsteps && i <= end; i++) {
    const struct step *s = &p->steps[i];
    if (s->kind == STEP_SIGNAL) {
      if (!given(e, s->signal, device, i)) break;
      at.step = i + 1;
    }
    if (s->kind == STEP_WAIT && !was_given(e, s->signal)) return (struct standing){i, s->signal, -1};
    if (s->kind == STEP_ALL_REDUCE) {
      if (!arrived(e, device, i)) break;
      at.step = i;
      at.missing = missing_device(e, s->collective);
      if (at.missing >= 0) return at;
    }
  }
  if (engines_on_host(e->engines, device)) at.step = end;
  for (int i = 0; e->asked && i < e->nends; i++)
    if (e->ends[i].device == device && e->ends[i].on->backend->reached(e->ends[i].event)) at.step = end;
  return at;
}

/* "step 7 of 20 (h.matmul, tower 1)" */
static const char *place(struct arena *a, const struct exec *e, int device, int step) {
  const struct device_plan *p = &e->plan->devices[device];
  if (step >= p->nsteps) return "its end";
  const struct node *n = p->steps[step].node;
  if (!n) return arena_printf(a, "step %d of %d", step, p->nsteps);
  const char *tower = n->tower >= 0 ? arena_printf(a, ", tower %d", n->tower) : "";
  return arena_printf(a, "step %d of %d (%s%s)", step, p->nsteps, n->name, tower);
}

void exec_explain_overdue(const struct exec *e, struct diags *d) {
  if (e->transport && transport_failed(e->transport)) {
    transport_report(e->transport, &e->engines->target, d);
    return;
  }
  const struct device *devices = e->plan->graph->config.target.devices;
  struct arena *a = arena_create();
  int blamed = -1, waiting = -1;
  struct standing at = {0, -1, -1}, before = at;
  for (int i = 0; i < e->plan->ndevices && !waits(at); i++) {
    if (!engines_here(e->engines, i)) continue;
    struct standing here = stand(e, i);
    if (!waits(here) && (blamed >= 0 || here.step >= e->plan->devices[i].nsteps)) continue;
    at = here;
    blamed = i;
  }
  for (int hops = 0; waits(at) && hops < e->plan->ndevices; hops++) {
    before = at;
    waiting = blamed;
    int step = 0;
    blamed = at.missing >= 0 ? at.missing : exec_giver(e, at.waits, &step);
    if (blamed < 0) break;
    at = stand(e, blamed);
  }
  if (waiting < 0 && blamed >= 0)
    diag_error(d, LOC_NONE, "the step did not end within %g s: %s has not answered; it stands at %s",
               e->limit, devices[blamed].text, place(a, e, blamed, at.step));
  else if (blamed >= 0)
    diag_error(d, LOC_NONE, "the step did not end within %g s: %s waits at %s for %s%s, which stands at %s",
               e->limit, devices[waiting].text, place(a, e, waiting, before.step),
               before.missing >= 0 ? "" : arena_printf(a, "signal %d of ", before.waits),
               devices[blamed].text, place(a, e, blamed, at.step));
  else if (waiting >= 0)
    diag_error(d, LOC_NONE,
               "the step did not end within %g s: %s waits at %s for signal %d, which nobody gives", e->limit,
               devices[waiting].text, place(a, e, waiting, before.step), before.waits);
  else
    diag_error(d, LOC_NONE, "the step did not end within %g s", e->limit);
  arena_destroy(a);
}

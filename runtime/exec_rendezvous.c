/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that devices of one backend make together: where they meet, in one process or several. */
#include "ir/graph/graph.h"
#include "runtime/exec.h"
#include "runtime/exec_internal.h"
#include "runtime/mpi/transport.h"

/* The processes that have devices of a collective, and which of them are this one's. */
struct circle {
  const struct exec *e;
  const struct collective *c;
  bool *here;
};

/* The process of rank 0 has it, and the others are sent it. */
static bool tell_circle(void *user, void *data, size_t bytes) {
  const struct circle *r = user;
  const struct transport *t = r->e->transport;
  int first = r->e->plan->processes[r->c->devices[0]];
  if (t->rank != first) return transport_receive(t, data, bytes, first, TAG_TEXT);
  for (int i = 1; i < r->c->count; i++) {
    int to = r->e->plan->processes[r->c->devices[i]];
    bool told = to == first;
    for (int k = 1; k < i; k++) told |= r->e->plan->processes[r->c->devices[k]] == to;
    if (!told && !transport_send(t, data, bytes, to, TAG_TEXT)) return false;
  }
  return true;
}

/* The backend of this process's devices; NULL: it has none of them, or they are not of one backend that can. */
static const struct opened *circle_backend(struct circle *r) {
  const struct opened *o = NULL;
  bool can = true;
  for (int i = 0; i < r->c->count; i++) {
    const struct opened *its = r->e->engines->devices[r->c->devices[i]];
    r->here[i] = engines_here(r->e->engines, r->c->devices[i]);
    if (!r->here[i]) continue;
    if (!o) o = its;
    can = can && its == o && o->backend->rendezvous != NULL;
  }
  return can ? o : NULL;
}

static bool is_away(const struct circle *r) {
  for (int i = 0; i < r->c->count; i++)
    if (r->here[i]) return false;
  return true;
}

bool exec_load_rendezvous(struct exec *e, void ***out, struct diags *d) {
  const struct plan *p = e->plan;
  void **all = *out = arena_new_array(e->arena, (size_t)p->ncollectives, void *);
  e->arrivals = arena_new_array(e->arena, (size_t)p->ncollectives * (size_t)p->ndevices, struct point);
  for (int i = 0; i < p->ncollectives; i++) {
    const struct collective *c = &p->collectives[i];
    struct circle circle = {e, c, arena_new_array(e->arena, (size_t)c->count, bool)};
    const struct opened *o = circle_backend(&circle);
    if (is_away(&circle)) continue;
    if (!o) {
      diag_error(d, LOC_NONE, "%s and %s cannot make a sum together", plan_device_text(p, c->devices[0]),
                 plan_device_text(p, c->devices[c->count - 1]));
      return false;
    }
    const struct company company = {circle.here, tell_circle, &circle};
    all[i] = o->backend->rendezvous(o->self, e->arena, c, &company, d);
    if (!all[i]) {
      if (e->transport && transport_failed(e->transport))
        transport_report(e->transport, &p->graph->config.target, d);
      return false;
    }
    for (int k = 0; k < c->count; k++) {
      if (!circle.here[k]) continue;
      struct point *at = &e->arrivals[i * p->ndevices + c->devices[k]];
      *at = (struct point){.on = o, .device = c->devices[k]};
      if (!o->backend->mark(o->self, e->arena, at->device, QUEUE_WORK, &at->mark, &at->event, d))
        return false;
    }
  }
  return true;
}

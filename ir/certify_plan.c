/* The order in which the devices of a plan meet.
 *
 * Every signal is given once and waited for. What one device waits for from another, it waits for in the order
 * in which it is given: so all devices meet in one order. And run as far as the waits allow, all devices come
 * to their end. Whether there are enough meetings is plan_verify's to say. */
#include "ir/build.h"
#include "ir/certify.h"

#include <string.h>

struct meeting {
  int device, step; /* who gives the signal and where; device -1: nobody */
  bool met;
};

struct order {
  const struct plan *p;
  struct diags *d;
  struct certificate *out;
  struct meeting *meetings;
};

static void breach(struct order *o, int device, int step, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void breach(struct order *o, int device, int step, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  struct str what = str_make(o->d->arena);
  str_put(&what, arena_vprintf(o->d->arena, fmt, ap));
  va_end(ap);
  const struct node *n = o->p->devices[device].steps[step].node;
  o->out->claims[CLAIM_ORDER].breaches++;
  o->out->breaches++;
  diag_error(o->d, n ? n->loc : LOC_NONE, "order: plan %s, %s, step %d (%s): %s", o->p->graph->name,
             o->p->graph->config.target.devices[device].text, step, n ? n->name : "?", what.data);
}

static bool collect(struct order *o) {
  for (int i = 0; i < o->p->nsignals; i++) o->meetings[i].device = -1;
  for (int d = 0; d < o->p->ndevices; d++)
    for (int i = 0; i < o->p->devices[d].nsteps; i++) {
      const struct step *s = &o->p->devices[d].steps[i];
      if (s->kind != STEP_SIGNAL && s->kind != STEP_WAIT) continue;
      if (s->signal < 0 || s->signal >= o->p->nsignals) {
        breach(o, d, i, "there is no signal %d", s->signal);
        return false;
      }
      struct meeting *m = &o->meetings[s->signal];
      if (s->kind == STEP_WAIT) {
        m->met = true;
        continue;
      }
      if (m->device >= 0) breach(o, d, i, "signal %d is given twice", s->signal);
      m->device = d;
      m->step = i;
    }
  return true;
}

/* What a device waits for from each other one, in the order in which it is given. */
static void check_waits(struct order *o, int device, int *last) {
  for (int i = 0; i < o->p->ndevices; i++) last[i] = -1;
  for (int i = 0; i < o->p->devices[device].nsteps; i++) {
    const struct step *s = &o->p->devices[device].steps[i];
    if (s->kind == STEP_SIGNAL && !o->meetings[s->signal].met)
      breach(o, device, i, "nobody waits for signal %d", s->signal);
    if (s->kind != STEP_WAIT) continue;
    const struct meeting *m = &o->meetings[s->signal];
    if (m->device < 0)
      breach(o, device, i, "nobody gives signal %d", s->signal);
    else if (m->device == device)
      breach(o, device, i, "it waits for itself");
    else if (m->step <= last[m->device])
      breach(o, device, i, "signal %d was given before what %s has waited for already", s->signal,
             o->p->graph->config.target.devices[device].text);
    else
      last[m->device] = m->step;
  }
}

static void run(struct order *o, int *at) {
  bool moved = true;
  memset(at, 0, (size_t)o->p->ndevices * sizeof *at);
  while (moved) {
    moved = false;
    for (int d = 0; d < o->p->ndevices; d++)
      for (; at[d] < o->p->devices[d].nsteps; at[d]++) {
        const struct step *s = &o->p->devices[d].steps[at[d]];
        const struct meeting *m = s->kind == STEP_WAIT ? &o->meetings[s->signal] : NULL;
        if (m && m->device >= 0 && at[m->device] <= m->step) break;
        moved = true;
      }
  }
  for (int d = 0; d < o->p->ndevices; d++)
    if (at[d] < o->p->devices[d].nsteps)
      breach(o, d, at[d], "the devices wait for each other: signal %d is never given",
             o->p->devices[d].steps[at[d]].signal);
}

bool plan_certify(struct arena *a, const struct plan *p, struct diags *d, struct certificate *out) {
  struct certificate own = {0};
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  struct order o = {.p = p, .d = d, .out = out ? out : &own};
  o.meetings = arena_new_array(scratch, (size_t)p->nsignals + 1, struct meeting);
  int *at = arena_new_array(scratch, (size_t)p->ndevices + 1, int), waits = 0, before = o.out->breaches;
  if (collect(&o)) {
    for (int i = 0; i < p->ndevices; i++) check_waits(&o, i, at);
    run(&o, at);
  }
  for (int i = 0; i < p->ndevices; i++)
    for (int k = 0; k < p->devices[i].nsteps; k++) waits += p->devices[i].steps[k].kind == STEP_WAIT;
  o.out->claims[CLAIM_ORDER].checked = true;
  o.out->claims[CLAIM_ORDER].text = arena_printf(
      a, "%d device%s meet at %d signal%s and %d wait%s, in one order", p->ndevices,
      p->ndevices == 1 ? "" : "s", p->nsignals, p->nsignals == 1 ? "" : "s", waits, waits == 1 ? "" : "s");
  arena_destroy_guarded(scratch, &guard);
  return o.out->breaches == before;
}

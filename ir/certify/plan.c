/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the signals, waits, collectives and messages of a plan: all devices come to them in one order, and none waits
 * for ever.
 *
 * Every signal is given once and waited for. What one device waits for from another, it waits for in the order
 * in which it is given: so all devices meet in one order. Each device of a collective takes part in it once, with
 * as many elements, and any two devices come to those they share in one order. Each message of a plan for processes is
 * sent, received and gone once, by its own devices, which are of two processes. And run as far as the waits,
 * collectives and messages allow, all devices come to their end, even where a message is gone only when it has been
 * received. Whether there are enough meetings is plan_verify's to say. */
#include "ir/certify/certify.h"
#include "ir/graph/build.h"

#include <string.h>

struct signal_use {
  int device, step; /* who gives the signal and where; device -1: nobody */
  bool met;
};

/* Steps of a message on its devices; -1: none. */
struct message_use {
  int send, sent, receive;
};

struct order_check {
  const struct plan *p;
  struct diags *d;
  struct certificate *out;
  struct signal_use *signals;
  struct message_use *messages;
};

static void breach(struct order_check *o, int device, int step, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void breach(struct order_check *o, int device, int step, const char *fmt, ...) {
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

static bool collect(struct order_check *o) {
  for (int i = 0; i < o->p->nsignals; i++) o->signals[i].device = -1;
  for (int d = 0; d < o->p->ndevices; d++)
    for (int i = 0; i < o->p->devices[d].nsteps; i++) {
      const struct step *s = &o->p->devices[d].steps[i];
      if (s->kind != STEP_SIGNAL && s->kind != STEP_WAIT) continue;
      if (s->signal < 0 || s->signal >= o->p->nsignals) {
        breach(o, d, i, "there is no signal %d", s->signal);
        return false;
      }
      struct signal_use *m = &o->signals[s->signal];
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
static void check_waits(struct order_check *o, int device, int *last) {
  for (int i = 0; i < o->p->ndevices; i++) last[i] = -1;
  for (int i = 0; i < o->p->devices[device].nsteps; i++) {
    const struct step *s = &o->p->devices[device].steps[i];
    if (s->kind == STEP_SIGNAL && !o->signals[s->signal].met)
      breach(o, device, i, "nobody waits for signal %d", s->signal);
    if (s->kind != STEP_WAIT) continue;
    const struct signal_use *m = &o->signals[s->signal];
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

/* ---- collectives ---- */

/* Whose step it is: a device of the collective, with as many bytes. False if there is none to speak of. */
static bool check_part(struct order_check *o, int device, int step) {
  const struct step *s = &o->p->devices[device].steps[step];
  const struct collective *c = s->collective;
  if (!c || c->number < 0 || c->number >= o->p->ncollectives || c != &o->p->collectives[c->number]) {
    breach(o, device, step, "there is no such collective");
    return false;
  }
  if (collective_rank_of(c, device) < 0)
    breach(o, device, step, "collective %d is not for this device", c->number);
  if (s->bytes != c->elements * dtype_size(c->dtype))
    breach(o, device, step, "%lld bytes are no %lld elements of %s", (long long)s->bytes,
           (long long)c->elements, dtype_name(c->dtype));
  return true;
}

/* Where each device takes part in each collective: place[device * collectives + number], -1 = nowhere. */
static bool find_parts(struct order_check *o, int *place) {
  int n = o->p->ncollectives;
  for (int d = 0; d < o->p->ndevices; d++)
    for (int i = 0; i < n; i++) place[d * n + i] = -1;
  for (int d = 0; d < o->p->ndevices; d++)
    for (int i = 0; i < o->p->devices[d].nsteps; i++) {
      const struct step *s = &o->p->devices[d].steps[i];
      if (s->kind != STEP_ALL_REDUCE) continue;
      if (!check_part(o, d, i)) return false;
      int *at = &place[d * n + s->collective->number];
      if (*at >= 0) breach(o, d, i, "the device takes part in collective %d twice", s->collective->number);
      *at = i;
    }
  return true;
}

/* Nobody is missing. It is said where the first of the others takes part. */
static void check_complete(struct order_check *o, const struct collective *c, const int *place) {
  int n = o->p->ncollectives, first = 0;
  while (first < c->count && place[c->devices[first] * n + c->number] < 0) first++;
  for (int i = 0; first < c->count && i < c->count; i++)
    if (place[c->devices[i] * n + c->number] < 0)
      breach(o, c->devices[first], place[c->devices[first] * n + c->number],
             "%s takes no part in collective %d", o->p->graph->config.target.devices[c->devices[i]].text,
             c->number);
}

/* Any two devices come to the collectives that they share in one order. */
static void check_one_order(struct order_check *o, const int *place, int device) {
  int n = o->p->ncollectives;
  for (int other = 0; other < o->p->ndevices; other++) {
    int last = -1;
    for (int i = 0; other != device && i < o->p->devices[device].nsteps; i++) {
      const struct step *s = &o->p->devices[device].steps[i];
      int at = s->kind == STEP_ALL_REDUCE ? place[other * n + s->collective->number] : -1;
      if (at < 0) continue;
      if (at < last)
        breach(o, device, i, "%s comes to collective %d before others that it meets this device at",
               o->p->graph->config.target.devices[other].text, s->collective->number);
      last = at > last ? at : last;
    }
  }
}

/* ---- messages ---- */

static bool is_message(const struct step *s) {
  return s->kind == STEP_SEND || s->kind == STEP_SENT || s->kind == STEP_RECEIVE;
}

static int *use_of(struct message_use *m, enum step_kind kind) {
  return kind == STEP_SEND ? &m->send : kind == STEP_SENT ? &m->sent : &m->receive;
}

static bool find_messages(struct order_check *o) {
  const struct plan *p = o->p;
  for (int i = 0; i < p->nmessages; i++) o->messages[i] = (struct message_use){-1, -1, -1};
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i < p->devices[d].nsteps; i++) {
      const struct step *s = &p->devices[d].steps[i];
      const struct message *m = s->message;
      if (!is_message(s)) continue;
      if (!m || m->number < 0 || m->number >= p->nmessages || m != &p->messages[m->number]) {
        breach(o, d, i, "there is no such message");
        return false;
      }
      int *at = use_of(&o->messages[m->number], s->kind);
      if (d != (s->kind == STEP_RECEIVE ? m->to : m->from))
        breach(o, d, i, "message %d is not for this device", m->number);
      else if (plan_process(p, m->from) == plan_process(p, m->to))
        breach(o, d, i, "message %d stays within its process", m->number);
      else if (*at >= 0)
        breach(o, d, i, "message %d is at step %d already", m->number, *at);
      else
        *at = i;
    }
  return true;
}

/* Nothing is missing. It is said where one of the others is. */
static void check_message(struct order_check *o, const struct message *m) {
  const struct message_use *u = &o->messages[m->number];
  int from = u->send >= 0 ? u->send : u->sent;
  int device = from >= 0 ? m->from : m->to, step = from >= 0 ? from : u->receive;
  const char *missing = u->send < 0      ? "sent"
                        : u->receive < 0 ? "received"
                        : u->sent < 0    ? "waited for"
                                         : NULL;
  if (step >= 0 && missing) breach(o, device, step, "message %d is not %s", m->number, missing);
}

/* Whether what a step of it needs has been done. */
static bool may_pass(const struct order_check *o, const struct step *s, const int *at) {
  const struct message *m = s->message;
  const struct message_use *u = &o->messages[m->number];
  if (s->kind == STEP_RECEIVE) return u->send < 0 || at[m->from] > u->send;
  return s->kind == STEP_SEND || u->receive < 0 || at[m->to] > u->receive;
}

/* ---- all together ---- */

/* Whether all that take part in it have come to their part. */
static bool have_met(const struct order_check *o, const struct collective *c, const int *place,
                     const int *at) {
  for (int i = 0; i < c->count; i++) {
    int device = c->devices[i], step = place[device * o->p->ncollectives + c->number];
    if (step < 0 || at[device] < step) return false;
  }
  return true;
}

static void run(struct order_check *o, const int *place, int *at) {
  bool moved = true;
  memset(at, 0, (size_t)o->p->ndevices * sizeof *at);
  while (moved) {
    moved = false;
    for (int d = 0; d < o->p->ndevices; d++)
      for (; at[d] < o->p->devices[d].nsteps; at[d]++) {
        const struct step *s = &o->p->devices[d].steps[at[d]];
        const struct signal_use *m = s->kind == STEP_WAIT ? &o->signals[s->signal] : NULL;
        if (m && m->device >= 0 && at[m->device] <= m->step) break;
        if (s->kind == STEP_ALL_REDUCE && !have_met(o, s->collective, place, at)) break;
        if (is_message(s) && !may_pass(o, s, at)) break;
        moved = true;
      }
  }
  for (int d = 0; d < o->p->ndevices; d++) {
    if (at[d] >= o->p->devices[d].nsteps) continue;
    const struct step *s = &o->p->devices[d].steps[at[d]];
    if (s->kind == STEP_ALL_REDUCE)
      breach(o, d, at[d], "the devices wait for each other: those of collective %d never meet",
             s->collective->number);
    else if (is_message(s))
      breach(o, d, at[d], "the processes wait for each other: message %d is never %s", s->message->number,
             s->kind == STEP_RECEIVE ? "sent" : "received");
    else
      breach(o, d, at[d], "the devices wait for each other: signal %d is never given", s->signal);
  }
}

bool plan_certify(struct arena *a, const struct plan *p, struct diags *d, struct certificate *out) {
  struct certificate unread = {0};
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  struct order_check o = {.p = p, .d = d, .out = out ? out : &unread};
  o.signals = arena_new_array(scratch, (size_t)p->nsignals + 1, struct signal_use);
  int *at = arena_new_array(scratch, (size_t)p->ndevices + 1, int), waits = 0, before = o.out->breaches;
  int *place = arena_new_array(scratch, (size_t)p->ndevices * (size_t)p->ncollectives + 1, int);
  o.messages = arena_new_array(scratch, (size_t)p->nmessages + 1, struct message_use);
  if (collect(&o) && find_parts(&o, place) && find_messages(&o)) {
    for (int i = 0; i < p->ndevices; i++) check_waits(&o, i, at);
    for (int i = 0; i < p->ncollectives; i++) check_complete(&o, &p->collectives[i], place);
    for (int i = 0; i < p->ndevices; i++) check_one_order(&o, place, i);
    for (int i = 0; i < p->nmessages; i++) check_message(&o, &p->messages[i]);
    run(&o, place, at);
  }
  for (int i = 0; i < p->ndevices; i++)
    for (int k = 0; k < p->devices[i].nsteps; k++) waits += p->devices[i].steps[k].kind == STEP_WAIT;
  o.out->claims[CLAIM_ORDER].checked = true;
  const char *sums = p->ncollectives == 0 ? ""
                                          : arena_printf(a, " and %d collective%s", p->ncollectives,
                                                         p->ncollectives == 1 ? "" : "s");
  const char *processes = p->processes
                              ? arena_printf(a, " in %d processes, with %d message%s between them,",
                                             p->nprocesses, p->nmessages, p->nmessages == 1 ? "" : "s")
                              : "";
  o.out->claims[CLAIM_ORDER].text = arena_printf(
      a, "%d device%s%s %s at %d signal%s%s %d wait%s%s, in one order", p->ndevices,
      p->ndevices == 1 ? "" : "s", processes, p->ndevices == 1 ? "meets" : "meet", p->nsignals,
      p->nsignals == 1 ? "" : "s", p->ncollectives ? "," : " and", waits, waits == 1 ? "" : "s", sums);
  arena_destroy_guarded(scratch, &guard);
  return o.out->breaches == before;
}

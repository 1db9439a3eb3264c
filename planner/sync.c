/* SPDX-License-Identifier: Apache-2.0 */
/* Where devices meet: a signal after what another device needs, a wait before the need. Devices of two processes meet
 * in the messages that their copies become: what is needed of another process is always the source of a copy; and
 * that a copy has been done, so that its source may be overwritten, is known when its message is gone.
 *
 * Each device keeps a vector clock: how many steps of every other device it knows to be done. A wait is only made
 * for what the clock does not cover, and passes on what the signalling device knew (Fidge and Mattern, 1988). As
 * everything is made in one global order of the units, no meeting can deadlock. */
#include "planner/schedule.h"

#include <limits.h>
#include <string.h>

struct sync {
  struct schedule *s;
  int *clocks; /* device * nticks + tick of the other */
  int *need;   /* by device: how many of its steps the unit at hand needs */
  int *asked;  /* devices with a need */
  int nasked;
};

static int end_of(const struct plan_unit *t) { return t->begin + t->nlaunches; }

static bool same_process(const struct sync *y, int device, int other) {
  return plan_process(y->s->plan, device) == plan_process(y->s->plan, other);
}

/* The unit overwrites what was sent for `receiver`. */
static void require_sent(struct sync *y, const struct plan_unit *t, const struct plan_unit *receiver) {
  struct sending *m = &y->s->lines[t->device].sendings[receiver->sending];
  if (m->before > t->begin) m->before = t->begin;
}

static int *clock_of(const struct sync *y, int device) {
  return &y->clocks[(size_t)device * (size_t)y->s->nticks];
}

static void require(struct sync *y, const struct plan_unit *t, int unit) {
  const struct plan_unit *other = &y->s->units[unit];
  if (other->kind == STEP_SEND) {
    require_sent(y, t, other);
    return;
  }
  if (other->device == t->device || (other->variable != NONE && other->nlaunches == 0)) return;
  if (!same_process(y, t->device, other->device)) {
    require_sent(y, t, other);
    return;
  }
  int end = end_of(other), *need = &y->need[other->device];
  if (end <= clock_of(y, t->device)[y->s->ticks[other->device]]) return;
  if (*need == 0) y->asked[y->nasked++] = other->device;
  if (end > *need) *need = end;
}

/* What `device` knew when it had done `done` of its steps. */
static const int *known_at(const struct timeline *line, int done) {
  int lo = 0, hi = line->nsnapshots; /* the last snapshot before step done - 1 or at it */
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (line->snapshots[mid].step < done)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo > 0 ? line->snapshots[lo - 1].clock : NULL;
}

/* Whether a wait for another need tells that this one is met as well. */
static bool implied(const struct sync *y, int device) {
  for (int i = 0; i < y->nasked; i++) {
    int other = y->asked[i];
    if (other == device) continue;
    const int *known = known_at(&y->s->lines[other], y->need[other]);
    if (known && known[y->s->ticks[device]] >= y->need[device]) return true;
  }
  return false;
}

/* `device` comes to know that `other` has done so many of its steps, and what that one knew. */
static void learn(struct sync *y, int device, int other, int done) {
  const struct schedule *s = y->s;
  int *clock = clock_of(y, device), tick = s->ticks[other];
  const int *known = known_at(&s->lines[other], done);
  for (int i = 0; known && i < s->nticks; i++)
    if (i != s->ticks[device] && known[i] > clock[i]) clock[i] = known[i];
  if (tick != NONE && done > clock[tick]) clock[tick] = done;
}

static void wait_for(struct sync *y, const struct plan_unit *t, int device) {
  struct schedule *s = y->s;
  int done = y->need[device], *signal = &s->lines[device].signal_after[done - 1];
  if (*signal == NONE) *signal = s->nsignals++;
  struct timeline *line = &s->lines[t->device];
  GROW(s, line->waits, line->nwaits, line->waits_cap);
  line->waits[line->nwaits++] = (struct wait){t->begin, *signal};
  learn(y, t->device, device, done);
}

static void take_snapshot(struct sync *y, const struct plan_unit *t, bool within) {
  struct schedule *s = y->s;
  struct timeline *line = &s->lines[t->device];
  GROW(s, line->snapshots, line->nsnapshots, line->snapshots_cap);
  const int *clock = arena_copy(s->scratch, clock_of(y, t->device), (size_t)s->nticks * sizeof *clock);
  line->snapshots[line->nsnapshots++] = (struct snapshot){t->begin, clock, within};
}

/* The message of a copy from another process: it is sent as soon as its source is there. It tells what the sender knew
 * then. */
static void receive(struct sync *y, int unit) {
  struct schedule *s = y->s;
  struct plan_unit *t = &s->units[unit];
  const struct planned_value *v = &s->values[t->reads[0].value];
  int done = v->producer == NONE ? 0 : end_of(&s->units[v->producer]);
  struct timeline *from = &s->lines[v->device];
  int number = t->message = s->plan->nmessages++;
  int64_t bytes = s->values[t->variable != NONE ? t->variable : t->result].bytes;
  s->plan->messages[number] = (struct message){number, number, v->device, t->device, t->node, bytes};
  t->sending = from->nsendings;
  GROW(s, from->sendings, from->nsendings, from->sendings_cap);
  from->sendings[from->nsendings++] = (struct sending){unit, t->message, done - 1, from->nsteps};
  learn(y, t->device, v->device, done);
}

/* In one part: the message goes as soon as what it is made of is there. */
static void send(struct sync *y, int unit) {
  struct schedule *s = y->s;
  struct plan_unit *t = &s->units[unit];
  struct timeline *line = &s->lines[t->device];
  int producer = s->values[t->reads[0].value].producer;
  int done = producer == NONE ? 0 : end_of(&s->units[producer]);
  t->sending = line->nsendings;
  GROW(s, line->sendings, line->nsendings, line->sendings_cap);
  line->sendings[line->nsendings++] = (struct sending){unit, t->message, done - 1, line->nsteps};
}

/* Everything that has to be done before the unit. */
static void require_all(struct sync *y, int unit) {
  struct schedule *s = y->s;
  const struct plan_unit *t = &s->units[unit];
  for (int i = 0; i < t->nreads && t->message == NONE; i++) {
    int v = t->reads[i].value;
    if (v != NONE && s->values[v].producer != NONE) require(y, t, s->values[v].producer);
  }
  for (int i = 0; i < t->nresults + (t->variable != NONE); i++) {
    int variable = i < t->nresults ? s->values[t->result + i].bound : t->variable;
    if (variable == NONE) continue;
    for (int l = s->values[variable].readers; l != NONE; l = s->links[l].next)
      if (s->links[l].unit != unit) require(y, t, s->links[l].unit);
  }
}

static void synchronize(struct sync *y, int unit) {
  const struct plan_unit *t = &y->s->units[unit];
  if (t->kind == STEP_SEND) send(y, unit);
  if (t->nlaunches == 0) return;
  bool receives = t->kind != STEP_RECEIVE && unit_receives(y->s, t);
  if (receives) receive(y, unit);
  require_all(y, unit);
  bool waits = false;
  for (int i = 0; i < y->nasked; i++) {
    if (implied(y, y->asked[i])) continue;
    wait_for(y, t, y->asked[i]);
    waits = true;
  }
  if (waits || receives) take_snapshot(y, t, receives);
  for (int i = 0; i < y->nasked; i++) y->need[y->asked[i]] = 0; /* one by one: devices are many */
  y->nasked = 0;
}

static void number_steps(struct schedule *s, int ndevices) {
  for (int i = 0; i < s->norder; i++) {
    struct plan_unit *t = &s->units[s->order[i]];
    t->begin = s->lines[t->device].nsteps;
    s->lines[t->device].nsteps += t->nlaunches;
  }
  for (int d = 0; d < ndevices; d++) {
    struct timeline *line = &s->lines[d];
    line->signal_after = arena_new_array(s->scratch, (size_t)line->nsteps, int);
    line->at = arena_new_array(s->scratch, (size_t)line->nsteps + 1, int);
    for (int i = 0; i < line->nsteps; i++) line->signal_after[i] = NONE;
  }
}

/* Places in the plan, now that all waits, signals and messages are known. */
static void number_places(struct schedule *s, struct timeline *line) {
  int place = 0, w = 0;
  int *messages =
      arena_new_array(s->scratch, (size_t)line->nsteps + 2, int); /* that stand before each step */
  for (int i = 0; i < line->nsendings; i++) {
    messages[line->sendings[i].after + 1]++;
    messages[line->sendings[i].before]++;
  }
  for (int i = 0; i < line->nsteps; i++) {
    place += messages[i];
    for (; w < line->nwaits && line->waits[w].step == i; w++) place++;
    line->at[i] = place++;
    place += line->signal_after[i] != NONE;
  }
  line->at[line->nsteps] = place + messages[line->nsteps];
}

int sync_last_unknowing(const struct schedule *s, int device, int other, int done) {
  const struct timeline *line = &s->lines[device];
  int lo = 0, hi = line->nsnapshots;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (line->snapshots[mid].clock[s->ticks[other]] < done)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo == line->nsnapshots) return INT_MAX;
  return line->at[line->snapshots[lo].step] - !line->snapshots[lo].within;
}

/* Devices wait for those of their own process only: of one that is alone in its process no clock has to tell. */
static void number_ticks(struct schedule *s, int ndevices) {
  int *count = arena_new_array(s->scratch, (size_t)s->plan->nprocesses, int); /* of devices */
  s->ticks = arena_new_array(s->scratch, (size_t)ndevices, int);
  for (int d = 0; d < ndevices; d++) count[plan_process(s->plan, d)]++;
  for (int d = 0; d < ndevices; d++) {
    int process = plan_process(s->plan, d);
    bool met = count[process] > 1 && (s->process == NONE || process == s->process);
    s->ticks[d] = met ? s->nticks++ : NONE;
  }
}

void schedule_sync(struct schedule *s) {
  int n = s->g->config.target.ndevices > 0 ? s->g->config.target.ndevices : 1;
  struct sync y = {.s = s};
  s->lines = arena_new_array(s->scratch, (size_t)n, struct timeline);
  number_ticks(s, n);
  y.clocks = arena_new_array(s->scratch, (size_t)n * (size_t)s->nticks, int);
  y.need = arena_new_array(s->scratch, (size_t)n, int);
  y.asked = arena_new_array(s->scratch, (size_t)n, int);
  number_steps(s, n);
  if (s->process == NONE)
    s->plan->messages = arena_new_array(s->arena, s->plan->processes ? (size_t)s->nunits : 0, struct message);
  for (int i = 0; n > 1 && i < s->norder; i++) synchronize(&y, s->order[i]);
  for (int d = 0; d < n; d++) number_places(s, &s->lines[d]);
}

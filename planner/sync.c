/* Where devices meet: a signal after what another device needs, a wait before the need.
 *
 * Each device keeps a vector clock: how many steps of every other device it knows to be done. A wait is only made
 * for what the clock does not cover, and passes on what the signalling device knew (Fidge and Mattern, 1988). As
 * everything is made in one global order of the tasks, no meeting can deadlock. */
#include "planner/schedule.h"

#include <limits.h>
#include <string.h>

struct sync {
  struct schedule *s;
  int ndevices;
  int *clocks; /* device * ndevices + other */
  int *need;   /* by device: how many of its steps the task at hand needs */
  int *asked;  /* devices with a need */
  int nasked;
};

static int end_of(const struct task *t) { return t->begin + t->nlaunches; }

static void require(struct sync *y, const struct task *t, int task) {
  const struct task *other = &y->s->tasks[task];
  if (other->device == t->device || other->nlaunches == 0) return;
  int end = end_of(other), *need = &y->need[other->device];
  if (end <= y->clocks[t->device * y->ndevices + other->device]) return;
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
    if (known && known[device] >= y->need[device]) return true;
  }
  return false;
}

static void wait_for(struct sync *y, const struct task *t, int device) {
  struct schedule *s = y->s;
  int done = y->need[device], *signal = &s->lines[device].signal_after[done - 1];
  if (*signal == NONE) *signal = s->nsignals++;
  struct timeline *line = &s->lines[t->device];
  GROW(s, line->waits, line->nwaits, line->waits_cap);
  line->waits[line->nwaits++] = (struct wait){t->begin, *signal};

  int *clock = &y->clocks[t->device * y->ndevices];
  const int *known = known_at(&s->lines[device], done);
  for (int i = 0; known && i < y->ndevices; i++)
    if (i != t->device && known[i] > clock[i]) clock[i] = known[i];
  if (done > clock[device]) clock[device] = done;
}

static void take_snapshot(struct sync *y, const struct task *t) {
  struct schedule *s = y->s;
  struct timeline *line = &s->lines[t->device];
  GROW(s, line->snapshots, line->nsnapshots, line->snapshots_cap);
  size_t bytes = (size_t)y->ndevices * sizeof(int);
  const int *clock = arena_copy(s->scratch, &y->clocks[t->device * y->ndevices], bytes);
  line->snapshots[line->nsnapshots++] = (struct snapshot){t->begin, clock};
}

/* Everything that has to be done before the task. */
static void require_all(struct sync *y, int task) {
  struct schedule *s = y->s;
  const struct task *t = &s->tasks[task];
  for (int i = 0; i < t->nreads; i++) {
    int v = t->reads[i].value;
    if (v != NONE && s->values[v].producer != NONE) require(y, t, s->values[v].producer);
  }
  for (int i = 0; i < t->nresults + (t->variable != NONE); i++) {
    int variable = i < t->nresults ? s->values[t->result + i].bound : t->variable;
    if (variable == NONE) continue;
    for (int l = s->values[variable].readers; l != NONE; l = s->links[l].next)
      if (s->links[l].task != task) require(y, t, s->links[l].task);
  }
}

static void synchronize(struct sync *y, int task) {
  const struct task *t = &y->s->tasks[task];
  if (t->nlaunches == 0) return;
  require_all(y, task);
  int waits = 0;
  for (int i = 0; i < y->nasked; i++) {
    if (implied(y, y->asked[i])) continue;
    y->asked[waits++] = y->asked[i];
  }
  for (int i = 0; i < waits; i++) wait_for(y, t, y->asked[i]);
  if (waits) take_snapshot(y, t);
  memset(y->need, 0, (size_t)y->ndevices * sizeof *y->need);
  y->nasked = 0;
}

static void number_steps(struct schedule *s, int ndevices) {
  for (int i = 0; i < s->norder; i++) {
    struct task *t = &s->tasks[s->order[i]];
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

/* Places in the plan, now that all waits and signals are known. */
static void number_places(struct timeline *line) {
  int place = 0, w = 0;
  for (int i = 0; i < line->nsteps; i++) {
    for (; w < line->nwaits && line->waits[w].step == i; w++) place++;
    line->at[i] = place++;
    place += line->signal_after[i] != NONE;
  }
  line->at[line->nsteps] = place;
}

int sync_first_knowing(const struct schedule *s, int device, int other, int done) {
  const struct timeline *line = &s->lines[device];
  int lo = 0, hi = line->nsnapshots;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (line->snapshots[mid].clock[other] < done)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < line->nsnapshots ? line->snapshots[lo].step : INT_MAX;
}

void schedule_sync(struct schedule *s) {
  int n = s->g->config.target.ndevices > 0 ? s->g->config.target.ndevices : 1;
  struct sync y = {.s = s, .ndevices = n};
  s->lines = arena_new_array(s->scratch, (size_t)n, struct timeline);
  y.clocks = arena_new_array(s->scratch, (size_t)n * (size_t)n, int);
  y.need = arena_new_array(s->scratch, (size_t)n, int);
  y.asked = arena_new_array(s->scratch, (size_t)n, int);
  number_steps(s, n);
  for (int i = 0; n > 1 && i < s->norder; i++) synchronize(&y, s->order[i]);
  for (int d = 0; d < n; d++) number_places(&s->lines[d]);
}

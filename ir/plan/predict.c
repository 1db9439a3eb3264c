/* SPDX-License-Identifier: Apache-2.0 */
/* A walk through a plan, step by step, always on the device whose clock is behind. */
#include "ir/plan/predict.h"

struct walk {
  const struct plan *p;
  const struct speeds *m;
  int *next;             /* by device: its next step */
  double *clock;         /* by device */
  double *sends, *takes; /* by process: when its link is free */
  double *arrives;       /* by message; below 0: not yet sent */
  double *raised;        /* by signal, in the same way */
  double *joined;        /* by collective: when the last of its devices came */
  int *waiting;          /* by collective: how many have come */
};

double step_predict(const struct step *s, const struct speeds *m) {
  return speeds_work(m, (double)s->flops, (double)s->traffic);
}

static double later(double a, double b) { return a > b ? a : b; }

static void send(struct walk *w, int device, const struct message *x) {
  int from = plan_process(w->p, x->from), to = plan_process(w->p, x->to);
  double takes = speeds_message(w->m, (double)x->bytes);
  w->sends[from] = later(w->sends[from], w->clock[device]) + takes;
  w->takes[to] = later(w->takes[to], w->clock[device]) + takes;
  w->arrives[x->number] = later(w->sends[from], w->takes[to]);
}

/* When the device may go on to its next step, below 0: others have to come first. */
static double may_begin(const struct walk *w, int device) {
  const struct step *s = &w->p->devices[device].steps[w->next[device]];
  double other = 0;
  if (s->kind == STEP_RECEIVE || s->kind == STEP_SENT) other = w->arrives[s->message->number];
  if (s->kind == STEP_WAIT) other = w->raised[s->signal];
  return other < 0 ? -1 : later(other, w->clock[device]);
}

/* All devices of a collective go on when the last one has come; each waits in turn without a clock of its own. */
static bool join(struct walk *w, int device, const struct step *s) {
  const struct collective *c = s->collective;
  double *joined = &w->joined[c->number];
  *joined = later(*joined, w->clock[device]);
  if (++w->waiting[c->number] < c->count) return false;
  for (int i = 0; i < c->count; i++) {
    int d = c->devices[i];
    w->clock[d] = *joined + speeds_work(w->m, (double)c->elements, (double)collective_bytes(c, i));
    w->next[d]++;
  }
  return true;
}

static void go(struct walk *w, int device, double begin) {
  const struct step *s = &w->p->devices[device].steps[w->next[device]++];
  w->clock[device] = begin + step_predict(s, w->m);
  if (s->kind == STEP_SEND) send(w, device, s->message);
  if (s->kind == STEP_SIGNAL) w->raised[s->signal] = w->clock[device];
}

/* The device that can go on and is behind all others that can; -1: none. */
static int find_next(const struct walk *w, const bool *joined, double *begin) {
  int found = -1;
  for (int d = 0; d < w->p->ndevices; d++) {
    if (joined[d] || w->next[d] == w->p->devices[d].nsteps) continue;
    double at = may_begin(w, d);
    if (at < 0 || (found >= 0 && at >= *begin)) continue;
    found = d;
    *begin = at;
  }
  return found;
}

double plan_predict(struct arena *a, const struct plan *p, const struct speeds *m) {
  size_t devices = (size_t)p->ndevices, processes = (size_t)(p->nprocesses > 1 ? p->nprocesses : 1);
  struct walk w = {.p = p,
                   .m = m,
                   .next = arena_new_array(a, devices, int),
                   .clock = arena_new_array(a, devices, double),
                   .sends = arena_new_array(a, processes, double),
                   .takes = arena_new_array(a, processes, double),
                   .arrives = arena_new_array(a, (size_t)p->nmessages, double),
                   .raised = arena_new_array(a, (size_t)p->nsignals, double),
                   .joined = arena_new_array(a, (size_t)p->ncollectives, double),
                   .waiting = arena_new_array(a, (size_t)p->ncollectives, int)};
  bool *joined = arena_new_array(a, devices, bool);
  double begin = 0, end = 0;
  for (int i = 0; i < p->nmessages; i++) w.arrives[i] = -1;
  for (int i = 0; i < p->nsignals; i++) w.raised[i] = -1;
  for (int d; (d = find_next(&w, joined, &begin)) >= 0;) {
    const struct step *s = &p->devices[d].steps[w.next[d]];
    if (s->kind != STEP_ALL_REDUCE) {
      go(&w, d, begin);
      continue;
    }
    bool last = join(&w, d, s);
    for (int i = 0; i < s->collective->count; i++)
      if (last || s->collective->devices[i] == d) joined[s->collective->devices[i]] = !last;
  }
  for (int d = 0; d < p->ndevices; d++) end = later(end, w.clock[d]);
  return end;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of plans: where devices meet, and what they do together. */
#include "mutations.h"

#include <string.h>

static struct step *meeting(struct patient *p, enum step_kind kind, int *device, int *at) {
  for (int d = 0; d < p->plan->ndevices; d++)
    for (int i = 0; i < p->plan->devices[d].nsteps; i++) {
      if (p->plan->devices[d].steps[i].kind != kind || !here(p)) continue;
      suspect(p, p->g->config.target.devices[d].text);
      *device = d;
      *at = i;
      return &p->plan->devices[d].steps[i];
    }
  return NULL;
}

static void remove_step(struct patient *p, int device, int at) {
  struct device_plan *d = &p->plan->devices[device];
  memmove(&d->steps[at], &d->steps[at + 1], sizeof *d->steps * (size_t)(d->nsteps - at - 1));
  d->nsteps--;
}

/* Whether signal `later` is given only when `earlier` has been: by what its giver does and waits for before. `asked`
 * has the signals that need not be asked again. */
static bool comes_after(const struct plan *p, int later, int earlier, bool *asked) {
  if (asked[later]) return false;
  asked[later] = true;
  for (int d = 0; d < p->ndevices; d++) {
    const struct step *steps = p->devices[d].steps;
    int given = 0, end = p->devices[d].nsteps;
    while (given < end && (steps[given].kind != STEP_SIGNAL || steps[given].signal != later)) given++;
    for (int i = 0; given < end && i < given; i++) {
      if (steps[i].kind != STEP_SIGNAL && steps[i].kind != STEP_WAIT) continue;
      if (steps[i].signal == earlier) return true;
      if (steps[i].kind == STEP_WAIT && comes_after(p, steps[i].signal, earlier, asked)) return true;
    }
  }
  return false;
}

/* The first wait of the two is needed, even if the second one comes in its place. */
static bool both_needed(const struct patient *p, enum step_kind kind, int first, int second) {
  bool *asked = arena_new_array(p->arena, (size_t)p->plan->nsignals, bool);
  return kind != STEP_WAIT || !comes_after(p->plan, second, first, asked);
}

/* The next meeting of the same kind on the device changes places with this one; there is work between them. */
static bool swap_with_next(struct patient *p, enum step_kind kind) {
  for (int d = 0; d < p->plan->ndevices; d++) {
    struct step *steps = p->plan->devices[d].steps, *last = NULL;
    bool works = false;
    for (int i = 0; i < p->plan->devices[d].nsteps; i++) {
      works = works || steps[i].kind < STEP_SIGNAL;
      if (steps[i].kind != kind) continue;
      if (last && works && both_needed(p, kind, last->signal, steps[i].signal) && here(p)) {
        int signal = last->signal;
        last->signal = steps[i].signal;
        steps[i].signal = signal;
        suspect(p, arena_printf(p->arena, "signal %d", signal));
        suspect(p, arena_printf(p->arena, "signal %d", last->signal));
        suspect(p, "without a wait");
        return true;
      }
      last = &steps[i];
      works = false;
    }
  }
  return false;
}

static bool removed_wait(struct patient *p) {
  int device, at;
  if (!meeting(p, STEP_WAIT, &device, &at)) return false;
  remove_step(p, device, at);
  suspect(p, "wait");
  return true;
}

static bool removed_signal(struct patient *p) {
  int device, at;
  struct step *s = meeting(p, STEP_SIGNAL, &device, &at);
  if (!s) return false;
  suspect(p, arena_printf(p->arena, "signal %d", s->signal));
  remove_step(p, device, at);
  return true;
}

static bool signal_given_twice(struct patient *p) {
  int device, at;
  struct step *s = meeting(p, STEP_SIGNAL, &device, &at);
  if (!s) return false;
  struct device_plan *d = &p->plan->devices[device];
  struct step *more = arena_new_array(p->arena, (size_t)d->nsteps + 1, struct step);
  memcpy(more, d->steps, sizeof *more * (size_t)(at + 1));
  memcpy(more + at + 1, d->steps + at, sizeof *more * (size_t)(d->nsteps - at));
  d->steps = more;
  d->nsteps++;
  return true;
}

static bool waits_swapped(struct patient *p) { return swap_with_next(p, STEP_WAIT); }
static bool signals_swapped(struct patient *p) { return swap_with_next(p, STEP_SIGNAL); }

static bool wait_for_itself(struct patient *p) {
  int device, at;
  struct step *s = meeting(p, STEP_WAIT, &device, &at);
  if (!s) return false;
  for (int i = 0; i < p->plan->devices[device].nsteps; i++)
    if (p->plan->devices[device].steps[i].kind == STEP_SIGNAL)
      s->signal = p->plan->devices[device].steps[i].signal;
  return true;
}

/* A device waits at its very end for what it should have waited for at once. */
static bool late_wait(struct patient *p) {
  int device, at;
  struct step *s = meeting(p, STEP_WAIT, &device, &at), wait;
  if (!s) return false;
  wait = *s;
  remove_step(p, device, at);
  p->plan->devices[device].steps[p->plan->devices[device].nsteps++] = wait;
  suspect(p, "wait");
  return true;
}

/* The value is announced before it is there. */
static bool early_signal(struct patient *p) {
  int device, at;
  struct step *s = meeting(p, STEP_SIGNAL, &device, &at), signal;
  if (!s || at == 0) return false;
  signal = *s;
  *s = s[-1];
  s[-1] = signal;
  suspect(p, "wait");
  return true;
}

static bool removed_part(struct patient *p) {
  int device, at;
  struct step *s = meeting(p, STEP_ALL_REDUCE, &device, &at);
  if (!s) return false;
  suspect(p, arena_printf(p->arena, "collective %d", s->collective->number));
  remove_step(p, device, at);
  return true;
}

static bool wrong_count(struct patient *p) {
  int device, at;
  struct step *s = meeting(p, STEP_ALL_REDUCE, &device, &at);
  if (!s) return false;
  s->bytes -= dtype_size(s->collective->dtype);
  return true;
}

/* One device comes to a collective for the place of another. */
static bool takes_part_twice(struct patient *p) {
  int device, at;
  struct step *s = meeting(p, STEP_ALL_REDUCE, &device, &at);
  struct device_plan *d = s ? &p->plan->devices[device] : NULL;
  for (int i = 0; s && i < d->nsteps; i++)
    if (i != at && d->steps[i].kind == STEP_ALL_REDUCE && d->steps[i].bytes == s->bytes) {
      suspect(p, arena_printf(p->arena, "collective %d", s->collective->number));
      s->collective = d->steps[i].collective;
      return true;
    }
  return false;
}

/* One device comes to two collectives in another order than the others. */
static bool parts_swapped(struct patient *p) {
  int device, at;
  struct step *s = meeting(p, STEP_ALL_REDUCE, &device, &at);
  struct device_plan *d = s ? &p->plan->devices[device] : NULL;
  for (int i = at + 1; s && i < d->nsteps; i++)
    if (d->steps[i].kind == STEP_ALL_REDUCE) {
      struct step other = d->steps[i];
      d->steps[i] = *s;
      *s = other;
      return true;
    }
  return false;
}

#define MUTATION(name) \
  { #name, name }

const struct mutation plan_mutations[] = {
    MUTATION(removed_part),
    MUTATION(wrong_count),
    MUTATION(takes_part_twice),
    MUTATION(parts_swapped),
    MUTATION(removed_wait),
    MUTATION(removed_signal),
    MUTATION(signal_given_twice),
    MUTATION(waits_swapped),
    MUTATION(signals_swapped),
    MUTATION(wait_for_itself),
    MUTATION(late_wait),
    MUTATION(early_signal),
    {NULL, NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the units, by list scheduling. A unit is ready once all that it reads is there; of the ready ones the
 * smallest key goes next:
 *
 *   KEY_SINK    updates of variables, so that gradients die soon; and sums of packs of gradients, see pack_of
 *   KEY_LOCAL   everything else: as it stands in the graph, or tower by tower, see tower_of
 *   KEY_REMOTE  what reads a value of another device, and collectives, in the order in which they became ready: after
 *               what needs this device alone, so that devices wait as little as they can
 *   KEY_RECEIVE in the part of one process: messages, in their order. All that is needed of this process comes before:
 *               what others wait for is sent. And what overwrites a variable that is sent, as if it were received then
 *   KEY_LAST    updates on GPUs, those of one kernel together: neighbours become one launch
 *
 * The units of a collective are ready together and go one behind the other, so that all devices meet their collectives
 * in one order.
 *
 * Reads of a step see the value of a variable from before its write, so a unit that overwrites one comes after all its
 * readers. Where that cannot be, because a reader needs what the unit computes, the unit writes to memory of its own,
 * and a copy into the variable follows; where two variables change places, one of them is saved first. */
#include "planner/schedule.h"

#include "ir/graph/tower_order.h"

#include <string.h>

/* A binary heap of units: the smallest key first. */
struct heap {
  int64_t *keys;
  int count;
};

static void push(struct heap *h, int64_t key) {
  int i = h->count++;
  for (; i > 0 && h->keys[(i - 1) / 2] > key; i = (i - 1) / 2) h->keys[i] = h->keys[(i - 1) / 2];
  h->keys[i] = key;
}

static int64_t pop(struct heap *h) {
  int64_t top = h->keys[0], last = h->keys[--h->count];
  int i = 0;
  for (int child = 1; child < h->count; child = 2 * i + 1) {
    if (child + 1 < h->count && h->keys[child + 1] < h->keys[child]) child++;
    if (last <= h->keys[child]) break;
    h->keys[i] = h->keys[child];
    i = child;
  }
  h->keys[i] = last;
  return top;
}

struct list_scheduler {
  struct schedule *s;
  struct heap ready; /* a unit that is not held any more is there twice */
  int *chosen;       /* by readiness: the unit */
  int nready;
  int *held; /* see is_held */
  int nheld, held_cap;
  int *stuck; /* units that wait for readers of variables only; may hold some that run since */
  int nstuck, stuck_cap;
  int nsent;  /* messages of one part that are done, all those before them, too */
  int *after; /* by message that is sent: the unit that waits until it is gone */
  bool by_tower;
};

/* Keys order units first by what they are, then by their place in the graph or by when they became ready. */
enum { KEY_SINK, KEY_LOCAL, KEY_REMOTE, KEY_RECEIVE, KEY_LAST };
#define KEY_BITS  40
#define UNIT_BITS 26 /* of those; the rest: of KEY_LOCAL the tower, of KEY_LAST bits of the kernel's hash */

/* Sums of packs start as soon as their last gradient is there, whatever else could run: what they move is under way
 * while the backward pass goes on. The number of the pack, or NONE. */
static int pack_of(const struct plan_unit *t) { return t->node ? t->node->pack - 1 : NONE; }

static bool on_gpu(const struct schedule *s, const struct plan_unit *t) {
  return strcmp(s->g->config.target.devices[t->device].name.kind, "gpu") == 0;
}

static bool comes_last(const struct schedule *s, const struct plan_unit *t) {
  return t->sink && !s->inside && on_gpu(s, t);
}

/* GPUs copy beside their other work. What reads such a copy of a pack would make that work wait for it: it comes when
 * the next pack starts, or when only what needs other devices is left. */
static bool is_held(const struct schedule *s, const struct plan_unit *t) {
  if (pack_of(t) == NONE || t->group != NONE || !on_gpu(s, t)) return false;
  for (int i = 0; i < t->nreads; i++) {
    int producer = t->reads[i].value == NONE ? NONE : s->values[t->reads[i].value].producer;
    const struct plan_unit *p = producer == NONE ? NULL : &s->units[producer];
    if (!p || p->kind != STEP_COPY || p->device != t->device) continue;
    int from = p->reads[0].value;
    if (from != NONE && s->values[from].device != t->device) return true;
  }
  return false;
}

/* In the part of one process: the last message of which a variable is sent that the unit overwrites, or NONE. */
static int last_sent(const struct schedule *s, const struct plan_unit *t) {
  int last = NONE;
  for (int i = 0; s->process != NONE && i < t->nresults + (t->variable != NONE); i++) {
    int variable = i < t->nresults ? s->values[t->result + i].bound : t->variable;
    for (int l = variable == NONE ? NONE : s->values[variable].readers; l != NONE; l = s->links[l].next) {
      const struct plan_unit *reader = &s->units[s->links[l].unit];
      if (reader->kind == STEP_SEND && reader->message > last) last = reader->message;
    }
  }
  return last;
}

/* Where towers of a device run one behind the other, they do so as far as they do not wait for each other. A sum of
 * several is of the first one of them, so it comes as soon as the last one is there; what is of no tower counts as the
 * first one's, among whose units it stands. */
static int64_t tower_of(const struct list_scheduler *r, const struct plan_unit *t) {
  enum { MOST = (1 << (KEY_BITS - UNIT_BITS)) - 1 };
  int tower = r->by_tower && t->node ? t->node->tower : 0;
  return tower < 0 ? 0 : tower < MOST ? tower : MOST;
}

static int64_t key_of(const struct list_scheduler *r, int unit, int64_t ready) {
  const struct schedule *s = r->s;
  const struct plan_unit *t = &s->units[unit];
  if (t->kind == STEP_SEND) return (int64_t)KEY_SINK << KEY_BITS | unit;
  if (t->kind == STEP_RECEIVE) return (int64_t)KEY_RECEIVE << KEY_BITS | t->message;
  int sent = last_sent(s, t);
  if (sent != NONE) {
    r->after[sent] = unit;
    return (int64_t)KEY_RECEIVE << KEY_BITS | sent;
  }
  if (is_held(s, t)) return (int64_t)KEY_REMOTE << KEY_BITS | ready;
  if (pack_of(t) != NONE) return (int64_t)KEY_SINK << KEY_BITS | unit;
  if (t->group != NONE) return (int64_t)KEY_REMOTE << KEY_BITS | ready;
  if (comes_last(s, t)) {
    int64_t kernel = t->launches && t->nlaunches
                         ? (int64_t)(t->launches[0].kernel->hash >> (64 - (KEY_BITS - UNIT_BITS)))
                         : 0;
    return (int64_t)KEY_LAST << KEY_BITS | kernel << UNIT_BITS | unit;
  }
  for (int i = 0; i < t->nreads; i++) {
    int producer = t->reads[i].value == NONE ? NONE : s->values[t->reads[i].value].producer;
    if (producer != NONE && s->units[producer].device != t->device)
      return (int64_t)KEY_REMOTE << KEY_BITS | ready;
  }
  if (t->sink) return (int64_t)KEY_SINK << KEY_BITS | unit;
  return (int64_t)KEY_LOCAL << KEY_BITS | tower_of(r, t) << UNIT_BITS | unit;
}

/* What devices do together is ready when all of them are, and is offered as the first one's unit. */
static bool all_ready(struct list_scheduler *r, struct unit_group *m) {
  for (int i = 0; i < m->count; i++)
    if (r->s->units[m->units[i]].unmet > 0) return false;
  bool first = !m->offered;
  m->offered = true;
  return first;
}

static void offer(struct list_scheduler *r, int unit) {
  struct plan_unit *t = &r->s->units[unit];
  if (t->unmet > 0 || t->done) return;
  if (t->group != NONE) {
    struct unit_group *m = &r->s->groups[t->group];
    if (!all_ready(r, m)) return;
    unit = m->units[0];
    t = &r->s->units[unit];
  }
  if (t->blocked == 0) {
    r->chosen[r->nready] = unit;
    push(&r->ready, key_of(r, unit, r->nready++));
    if (!is_held(r->s, t)) return;
    GROW(r->s, r->held, r->nheld, r->held_cap);
    r->held[r->nheld++] = unit;
    return;
  }
  GROW(r->s, r->stuck, r->nstuck, r->stuck_cap);
  r->stuck[r->nstuck++] = unit;
}

/* Whether a unit waits until `unit` has read `value`, which is a variable then. */
static bool is_awaited(const struct list_scheduler *r, int unit, int value) {
  int writer = value == NONE ? NONE : r->s->values[value].writer;
  return writer != NONE && writer != unit;
}

/* Its writer waits for one reader less. */
static void has_read(struct list_scheduler *r, int value) {
  struct planned_value *v = &r->s->values[value];
  v->unread--;
  struct plan_unit *w = &r->s->units[v->writer];
  if (--w->blocked == 0 && w->unmet == 0) offer(r, v->writer);
}

static void has_read_all(struct list_scheduler *r, int unit) {
  const struct plan_unit *t = &r->s->units[unit];
  for (int i = 0; i < t->nreads; i++) {
    int value = t->reads[i].value;
    bool seen = !is_awaited(r, unit, value);
    for (int k = 0; k < i && !seen; k++) seen = t->reads[k].value == value;
    if (!seen) has_read(r, value);
  }
}

/* A pack starts: those before it need not be held any longer. */
static void let_go(struct list_scheduler *r, int pack) {
  int kept = 0;
  for (int i = 0; i < r->nheld; i++) {
    int unit = r->held[i];
    if (r->s->units[unit].done) continue;
    if (pack_of(&r->s->units[unit]) == pack)
      r->held[kept++] = unit;
    else
      push(&r->ready, (int64_t)KEY_SINK << KEY_BITS | unit);
  }
  r->nheld = kept;
}

static void run_unit(struct list_scheduler *r, int unit) {
  struct schedule *s = r->s;
  int pack = pack_of(&s->units[unit]);
  if (pack != NONE && r->nheld && !is_held(s, &s->units[unit])) let_go(r, pack);
  s->units[unit].done = true;
  s->order[s->norder++] = unit;
  has_read_all(r, unit);
  const struct plan_unit *t = &s->units[unit];
  for (int v = t->result; v < t->result + t->nresults; v++)
    for (int l = s->values[v].readers; l != NONE; l = s->links[l].next) {
      int reader = s->links[l].unit;
      if (--s->units[reader].unmet == 0) offer(r, reader);
    }
}

/* A unit, or all those of what devices do together, so that all of them meet in one order. How many. */
static int run_chosen(struct list_scheduler *r, int unit) {
  int group = r->s->units[unit].group;
  if (group == NONE) {
    run_unit(r, unit);
    return 1;
  }
  const struct unit_group *m = &r->s->groups[group];
  for (int i = 0; i < m->count; i++) run_unit(r, m->units[i]);
  return m->count;
}

/* The update of `variable` that reads `value`, or what is added to it; none of it is written over the variable. */
static int unbind_value(struct schedule *s, int value, int variable) {
  for (;;) {
    int next = NONE;
    s->values[value].bound = NONE;
    for (int l = s->values[value].readers; l != NONE; l = s->links[l].next) {
      const struct plan_unit *t = &s->units[s->links[l].unit];
      if (t->variable == variable) return s->links[l].unit;
      if (unit_in_place(t) != NONE && s->values[t->result].bound == variable) next = t->result;
    }
    if (next == NONE) return NONE;
    value = next;
  }
}

/* The unit writes its own storage after all; a copy per variable that is still read follows. */
static void unbind(struct list_scheduler *r, int unit) {
  struct schedule *s = r->s;
  struct plan_unit *t = &s->units[unit];
  for (int v = t->result; v < t->result + t->nresults; v++) {
    int variable = s->values[v].bound;
    if (variable == NONE || s->values[variable].unread == 0) continue;
    int update = unbind_value(s, v, variable);
    s->values[variable].writer = update;
    s->units[update].nlaunches = 1;
    /* The unit itself may read the variable: one reader more. */
    for (int k = s->values[variable].readers; k != NONE; k = s->links[k].next)
      if (s->links[k].unit == unit) s->values[variable].unread++;
    s->units[update].blocked = s->values[variable].unread;
  }
  t->blocked = 0;
}

/* The update reads a variable that another one wants to overwrite: saves what it reads, now. */
static void save_source(struct list_scheduler *r, int update) {
  struct schedule *s = r->s;
  struct ref from = s->units[update].reads[0];
  int64_t bytes = s->values[s->units[update].variable].bytes;
  int unit = schedule_copy(s, s->units[update].node, from, s->units[update].device, bytes);
  struct plan_unit *u = &s->units[update];
  *u->reads = (struct ref){s->units[unit].result, 0};
  for (int l = s->values[from.value].readers; l != NONE; l = s->links[l].next)
    if (s->links[l].unit == update) s->links[l].unit = unit; /* it reads the saved value instead */
  schedule_read(s, update, s->units[unit].result);
  run_unit(r, unit);
}

/* Nothing can run: some unit has to give way. */
static void give_way(struct list_scheduler *r) {
  struct schedule *s = r->s;
  int best = NONE, save = NONE, kept = 0;
  for (int i = 0; i < r->nstuck; i++) {
    int unit = r->stuck[i];
    if (s->units[unit].done || s->units[unit].blocked == 0) continue;
    r->stuck[kept++] = unit;
    if (s->units[unit].variable == NONE) {
      if (best == NONE || unit < best) best = unit;
    } else if (s->values[s->units[unit].reads[0].value].region == REGION_VARIABLE) {
      if (save == NONE || unit < save) save = unit;
    }
  }
  r->nstuck = kept;
  if (best != NONE) {
    unbind(r, best);
    offer(r, best);
  } else {
    save_source(r, save);
  }
}

/* Whether a smaller message has not been sent, and what it is made of could give way. */
static bool is_early(struct list_scheduler *r, int message) {
  const struct schedule *s = r->s;
  while (r->nsent < message && s->units[s->by_message[r->nsent]].done) r->nsent++;
  if (r->nsent == message) return false;
  int stuck = 0;
  for (int i = 0; i < r->nstuck; i++) {
    const struct plan_unit *t = &s->units[r->stuck[i]];
    stuck += !t->done && t->blocked > 0;
  }
  return stuck > 0;
}

void schedule_order(struct schedule *s) {
  struct list_scheduler r = {.s = s, .by_tower = graph_tower_by_tower(s->g)};
  int work = s->nunits;
  size_t most = 3 * (size_t)s->nunits + 2; /* each update may cost one copy more, and a unit be held */
  r.ready.keys = arena_new_array(s->scratch, most, int64_t);
  r.chosen = arena_new_array(s->scratch, most, int);
  s->order = arena_new_array(s->scratch, most, int);
  r.after = arena_new_array(s->scratch, s->process == NONE ? 0 : (size_t)s->plan->nmessages, int);
  for (int i = 0; i < work; i++) offer(&r, i);
  while (work > 0) {
    if (r.ready.count == 0) {
      give_way(&r);
      continue;
    }
    int64_t key = pop(&r.ready);
    int low = (int)(key & ((INT64_C(1) << UNIT_BITS) - 1));
    int unit = key >> KEY_BITS == KEY_REMOTE ? r.chosen[low] : low;
    if (key >> KEY_BITS == KEY_RECEIVE) {
      unit = s->by_message[low];
      if (s->units[unit].kind == STEP_SEND) unit = r.after[low];
      if (is_early(&r, low)) {
        push(&r.ready, key);
        give_way(&r);
        continue;
      }
    }
    if (!s->units[unit].done) work -= run_chosen(&r, unit);
  }
}

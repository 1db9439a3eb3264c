/* SPDX-License-Identifier: Apache-2.0 */
/* Two partial orders are followed by vector clocks while the plan is gone through in one order that its meetings
 * allow. One is the plan's: what each device knows of the others' steps. The other is that of the queues: what each
 * knows of the others' places. An access that conflicts with an earlier one is waited for if the plan orders the two
 * and the queue does not know yet; a wait passes on all that was known at its point (Fidge and Mattern, 1988). */
#include "ir/plan/queues.h"

#include <string.h>

struct stream_access {
  int stream, place, step; /* stream -1: none */
  int64_t begin, end;      /* bytes of the region */
};

struct past {
  struct stream_access access;
  struct past *next;
};

/* A buffer so far: the last write, and the last read since by each stream; all accesses but those of bytes that the
 * same stream touched again later. */
struct touched {
  struct stream_access write;
  struct past *reads, *all;
};

/* What a stream knew from a place on. */
struct knowledge {
  int place;
  const int *clock;
  const struct knowledge *older;
};

/* A queue of a device; number 2 * device + queue. Place 1 of a queue of work is the beginning of the run. */
struct stream {
  int done;    /* places so far */
  int ended;   /* of copies: those that the device's queue of work knows of */
  int *steps;  /* by place; -1: the beginning */
  int *clock;  /* by stream: how many of its places are known to be done */
  bool learnt; /* since the newest knowledge was written down */
  const struct knowledge *newest;
};

/* What is passed on by a signal of the plan. */
struct passed {
  const int *order, *known;
};

struct queue_builder {
  struct arena *arena, *scratch;
  const struct plan *p;
  const enum manner *manners;
  struct queues *q;
  int n, nstreams;
  int *order;  /* device * n + other: steps of other that the plan puts before */
  int **known; /* by device: places that were done when what comes now was given; AT_ONCE: its clock */
  struct passed *passed;   /* by signal; NULL before it is given */
  struct stream *streams;  /* by number */
  struct touched *touched; /* by buffer */
  int *need;               /* by stream: the place that the steps at hand wait for, 0 = none */
  int *asked;              /* streams with a need */
  int nasked;
};

static int stream_of(int device, enum queue queue) { return QUEUE_COUNT * device + (int)queue; }
static int device_of(int stream) { return stream / QUEUE_COUNT; }

static void learn(int *clock, const int *from, int count) {
  for (int i = 0; i < count; i++)
    if (from[i] > clock[i]) clock[i] = from[i];
}

/* --- needs --- */

static void need_place(struct queue_builder *m, int stream, int other, int place) {
  if (other == stream || place <= m->streams[stream].clock[other]) return;
  if (m->need[other] == 0) m->asked[m->nasked++] = other;
  if (place > m->need[other]) m->need[other] = place;
}

/* What a device of the manner AT_ONCE has done is done when another is given what comes behind its signal. */
static void need_access(struct queue_builder *m, int stream, const struct stream_access *a) {
  if (a->stream < 0) return;
  int device = device_of(stream), other = device_of(a->stream);
  if (m->manners[other] == MANNER_AT_ONCE) return;
  if (other != device && m->order[device * m->n + other] <= a->step)
    return; /* the plan does not order them */
  need_place(m, stream, a->stream, a->place);
}

static void need_touched(struct queue_builder *m, int stream, const struct touched *t) {
  need_access(m, stream, &t->write);
  for (const struct past *r = t->reads; r; r = r->next) need_access(m, stream, &r->access);
}

/* What lay in the bytes of the buffer before. */
static void need_earlier(struct queue_builder *m, int stream, const struct plan_buffer *b) {
  for (int i = 0; i < m->p->nbuffers; i++) {
    const struct plan_buffer *o = &m->p->buffers[i];
    if (o->device != b->device || o->region != b->region || o->last >= b->first) continue;
    for (const struct past *r = m->touched[i].all; r; r = r->next)
      if (r->access.begin < b->offset + b->bytes && b->offset < r->access.end)
        need_access(m, stream, &r->access);
  }
}

static void need_operands(struct queue_builder *m, int stream, const struct step *s) {
  int reads = s->noperands - step_results(s);
  for (int i = 0; i < s->noperands; i++) {
    int buffer = s->operands[i].buffer;
    const struct touched *t = &m->touched[buffer];
    if (i < reads) {
      need_access(m, stream, &t->write);
      continue;
    }
    need_touched(m, stream, t);
    if (t->write.stream < 0 && m->p->buffers[buffer].region == REGION_ARENA)
      need_earlier(m, stream, &m->p->buffers[buffer]);
  }
}

/* Every point of this run comes behind its beginning. */
static void need_beginning(struct queue_builder *m, int stream) {
  bool knows = m->nasked > 0;
  for (int d = 0; d < m->n && !knows; d++) knows = m->streams[stream].clock[stream_of(d, QUEUE_WORK)] > 0;
  if (!knows) need_place(m, stream, stream_of(device_of(stream), QUEUE_WORK), 1);
}

/* --- waits --- */

static const int *known_at(const struct stream *s, int place) {
  const struct knowledge *k = s->newest;
  while (k && k->place > place) k = k->older;
  return k ? k->clock : NULL;
}

/* Whether a wait for another need tells that this one is met as well. */
static bool implied(const struct queue_builder *m, int stream) {
  for (int i = 0; i < m->nasked; i++) {
    int other = m->asked[i];
    const int *known = other == stream ? NULL : known_at(&m->streams[other], m->need[other]);
    if (known && known[stream] >= m->need[stream]) return true;
  }
  return false;
}

static void wait_for(struct queue_builder *m, int stream, int other, int step) {
  struct stream *s = &m->streams[stream], *o = &m->streams[other];
  int place = m->need[other], after = o->steps[place];
  int *point = &m->q->devices[device_of(other)].point[after + 1];
  if (*point < 0) {
    *point = m->q->npoints++;
    m->q->points[*point] = (struct queue_point){device_of(other), after, (enum queue)(other % QUEUE_COUNT)};
  }
  const struct queue_wait **waits = &m->q->devices[device_of(stream)].waits[step];
  struct queue_wait *w = arena_new(m->arena, struct queue_wait);
  *w = (struct queue_wait){*point, *waits};
  *waits = w;
  m->q->nwaits++;
  const int *known = known_at(o, place);
  if (known) learn(s->clock, known, m->nstreams);
  if (place > s->clock[other]) s->clock[other] = place;
  s->learnt = true;
}

/* Before the step; all that is needed then is done. */
static void wait_for_all(struct queue_builder *m, int stream, int step) {
  int count = 0;
  for (int i = 0; i < m->nasked; i++)
    if (!implied(m, m->asked[i])) m->asked[count++] = m->asked[i];
  for (int i = 0; i < count; i++) wait_for(m, stream, m->asked[i], step);
  memset(m->need, 0, (size_t)m->nstreams * sizeof *m->need);
  m->nasked = 0;
}

/* --- steps --- */

static int add_place(struct queue_builder *m, int stream, int step) {
  struct stream *s = &m->streams[stream];
  s->clock[stream] = ++s->done;
  s->steps[s->done] = step;
  if (s->learnt) {
    struct knowledge *k = arena_new(m->scratch, struct knowledge);
    *k = (struct knowledge){s->done, arena_copy(m->scratch, s->clock, (size_t)m->nstreams * sizeof *s->clock),
                            s->newest};
    s->newest = k;
    s->learnt = false;
  }
  return s->done;
}

static struct past *add_past(const struct queue_builder *m, struct stream_access now, struct past *next) {
  struct past *r = arena_new(m->scratch, struct past);
  *r = (struct past){now, next};
  return r;
}

static void keep_read(const struct queue_builder *m, struct touched *t, struct stream_access now) {
  struct past *r = t->reads;
  while (r && r->access.stream != now.stream) r = r->next;
  if (r)
    r->access = now;
  else
    t->reads = add_past(m, now, t->reads);
}

static void keep_bytes(const struct queue_builder *m, struct touched *t, struct stream_access now) {
  for (struct past **r = &t->all; *r;) {
    const struct stream_access *a = &(*r)->access;
    if (a->stream == now.stream && a->begin >= now.begin && a->end <= now.end)
      *r = (*r)->next;
    else
      r = &(*r)->next;
  }
  t->all = add_past(m, now, t->all);
}

static void keep_accesses(struct queue_builder *m, const struct step *s, struct stream_access now) {
  int reads = s->noperands - step_results(s);
  for (int i = 0; i < s->noperands; i++) {
    struct touched *t = &m->touched[s->operands[i].buffer];
    now.begin = m->p->buffers[s->operands[i].buffer].offset + s->operands[i].offset;
    now.end = now.begin + step_extent(s, i);
    keep_bytes(m, t, now);
    if (i < reads) {
      keep_read(m, t, now);
    } else {
      t->write = now;
      t->reads = NULL;
    }
  }
}

static enum queue queue_of(const struct queue_builder *m, int device, const struct step *s) {
  if (s->kind != STEP_COPY || m->manners[device] != MANNER_COPY_QUEUE) return QUEUE_WORK;
  int from = m->p->buffers[s->operands[0].buffer].device;
  return from != device && m->manners[from] != MANNER_AT_ONCE ? QUEUE_COPIES : QUEUE_WORK;
}

/* Steps from this one on that may be one launch: they take one place. */
static int together(const struct queue_builder *m, int device, int step) {
  const struct device_plan *dp = &m->p->devices[device];
  const struct step *first = &dp->steps[step];
  int count = 1;
  if (first->kind != STEP_KERNEL || first->kernel->kind != KERNEL_MAP || m->manners[device] == MANNER_AT_ONCE)
    return 1;
  while (step + count < dp->nsteps && first[count].kind == STEP_KERNEL &&
         kernel_equal(first->kernel, first[count].kernel))
    count++;
  return count;
}

static void pass_on(struct queue_builder *m, int device, int signal, int step) {
  int *order = arena_copy(m->scratch, &m->order[device * m->n], (size_t)m->n * sizeof *order);
  order[device] = step + 1;
  m->passed[signal].order = order;
  m->passed[signal].known = arena_copy(m->scratch, m->known[device], (size_t)m->nstreams * sizeof **m->known);
}

static void take_in(struct queue_builder *m, int device, int signal) {
  const struct passed *from = &m->passed[signal];
  int mine = m->order[device * m->n + device];
  learn(&m->order[device * m->n], from->order, m->n);
  m->order[device * m->n + device] = mine;
  learn(m->known[device], from->known, m->nstreams);
  for (int i = 0; i < QUEUE_COUNT; i++) {
    struct stream *s = &m->streams[stream_of(device, (enum queue)i)];
    learn(s->clock, from->known, m->nstreams);
    s->learnt = true;
  }
}

static void begin_copy(struct queue_builder *m, int device, int step) {
  int work = stream_of(device, QUEUE_WORK), known = m->streams[stream_of(device, QUEUE_COPIES)].clock[work];
  m->q->devices[device].after[step] = known > 0 ? m->streams[work].steps[known] : -1;
  m->q->devices[device].until[step] = m->p->devices[device].nsteps;
}

/* Those of which the queue of work knows with this step. */
static void end_copies(struct queue_builder *m, int device, int step) {
  struct stream *copies = &m->streams[stream_of(device, QUEUE_COPIES)];
  int known = m->streams[stream_of(device, QUEUE_WORK)].clock[stream_of(device, QUEUE_COPIES)];
  while (copies->ended < known) m->q->devices[device].until[copies->steps[++copies->ended]] = step;
}

/* The step, and those that go with it; how many. */
static int take_steps(struct queue_builder *m, int device, int step) {
  const struct step *s = &m->p->devices[device].steps[step];
  if (s->kind == STEP_SIGNAL) pass_on(m, device, s->signal, step);
  if (s->kind == STEP_WAIT) take_in(m, device, s->signal);
  if (s->kind == STEP_SIGNAL || s->kind == STEP_WAIT) return 1;
  enum queue queue = queue_of(m, device, s);
  int stream = stream_of(device, queue), count = together(m, device, step);
  for (int i = 0; i < count; i++) need_operands(m, stream, s + i);
  if (queue == QUEUE_COPIES) need_beginning(m, stream);
  wait_for_all(m, stream, step);
  int place = add_place(m, stream, step + count - 1);
  if (queue == QUEUE_COPIES)
    begin_copy(m, device, step);
  else
    end_copies(m, device, step);
  for (int i = 0; i < count; i++) {
    m->q->devices[device].queue[step + i] = queue;
    keep_accesses(m, s + i, (struct stream_access){.stream = stream, .place = place, .step = step + i});
  }
  return count;
}

static void take_all(struct queue_builder *m) {
  int *at = arena_new_array(m->scratch, (size_t)m->n, int);
  for (bool moved = true; moved;) {
    moved = false;
    for (int d = 0; d < m->n; d++)
      while (at[d] < m->p->devices[d].nsteps) {
        const struct step *s = &m->p->devices[d].steps[at[d]];
        if (s->kind == STEP_WAIT && !m->passed[s->signal].order) break;
        at[d] += take_steps(m, d, at[d]);
        moved = true;
      }
  }
}

/* Copies that nobody has waited for. Of copies that others have waited for, those in turn are known of at the end. */
static void wait_at_ends(struct queue_builder *m) {
  for (int d = 0; d < m->n; d++) {
    int copies = stream_of(d, QUEUE_COPIES), done = m->streams[copies].done;
    bool known = done == 0;
    for (int i = 0; i < m->nstreams && !known; i++)
      known = i != copies && m->streams[i].clock[copies] >= done;
    if (known) continue;
    need_place(m, stream_of(d, QUEUE_WORK), copies, done);
    wait_for_all(m, stream_of(d, QUEUE_WORK), m->p->devices[d].nsteps);
  }
}

static void open_device(struct queue_builder *m, int d) {
  size_t nsteps = (size_t)m->p->devices[d].nsteps;
  struct device_queues *dq = &m->q->devices[d];
  dq->queue = arena_new_array(m->arena, nsteps, enum queue);
  dq->after = arena_new_array(m->arena, nsteps, int);
  dq->until = arena_new_array(m->arena, nsteps, int);
  dq->point = arena_new_array(m->arena, nsteps + 1, int);
  dq->waits = arena_new_array(m->arena, nsteps + 1, const struct queue_wait *);
  for (size_t i = 0; i <= nsteps; i++) dq->point[i] = -1;
  for (int i = 0; i < QUEUE_COUNT; i++) {
    struct stream *s = &m->streams[stream_of(d, (enum queue)i)];
    s->clock = arena_new_array(m->scratch, (size_t)m->nstreams, int);
    s->steps = arena_new_array(m->scratch, nsteps + 2, int);
  }
  struct stream *work = &m->streams[stream_of(d, QUEUE_WORK)];
  m->known[d] = arena_new_array(m->scratch, (size_t)m->nstreams, int);
  if (m->manners[d] == MANNER_AT_ONCE) {
    m->known[d] = work->clock;
    return;
  }
  add_place(m, stream_of(d, QUEUE_WORK), -1);
  for (int i = 0; i < m->n; i++) work->clock[stream_of(i, QUEUE_WORK)] = m->manners[i] != MANNER_AT_ONCE;
}

struct queues *queues_make(struct arena *a, const struct plan *p, const enum manner *manners) {
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  struct queue_builder m = {.arena = a, .scratch = scratch, .p = p, .manners = manners, .n = p->ndevices};
  m.nstreams = QUEUE_COUNT * m.n;
  size_t n = (size_t)m.n, nstreams = (size_t)m.nstreams, npoints = n;
  for (int d = 0; d < m.n; d++) npoints += (size_t)p->devices[d].nsteps;
  m.q = arena_new(a, struct queues);
  m.q->devices = arena_new_array(a, n, struct device_queues);
  m.q->points = arena_new_array(a, npoints, struct queue_point);
  m.order = arena_new_array(scratch, n * n, int);
  m.known = arena_new_array(scratch, n, int *);
  m.passed = arena_new_array(scratch, (size_t)p->nsignals, struct passed);
  m.streams = arena_new_array(scratch, nstreams, struct stream);
  m.touched = arena_new_array(scratch, (size_t)p->nbuffers, struct touched);
  m.need = arena_new_array(scratch, nstreams, int);
  m.asked = arena_new_array(scratch, nstreams, int);
  for (int i = 0; i < p->nbuffers; i++) m.touched[i].write.stream = -1;
  for (int d = 0; d < m.n; d++) open_device(&m, d);
  take_all(&m);
  wait_at_ends(&m);
  arena_destroy_guarded(scratch, &guard);
  return m.q;
}

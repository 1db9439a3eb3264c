/* SPDX-License-Identifier: Apache-2.0 */
/* The plan checked by running it symbolically, with nothing known of how it was made.
 *
 * The devices run in turn, each as far as its waits allow, and carry vector clocks. An access to a buffer is
 * right if everything it conflicts with has happened before it by those clocks, not merely earlier in this run: then no
 * timing can change what is read. Buffers that share bytes must not be alive at the same step of their device, and a
 * reader on another device must be known to be done when its buffer dies. */
#include "ir/ops/op.h"
#include "ir/plan/plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct buffer_access {
  int device, step; /* step -1: none */
};

/* Since a buffer was written. */
struct buffer_read {
  struct buffer_access at;
  struct buffer_read *before;
};

struct state {
  struct buffer_access write;
  struct buffer_read *reads;
  int leaving; /* messages of it that are being sent */
};

/* Of each device how many of its steps are known to be done: a binary tree by the bits of their places, the highest
 * first. Trees share what is the same in them and are never changed, so that a thousand devices that all know of a
 * thousand take no million numbers. NULL: nothing is known of any. */
struct vector_clock {
  const struct vector_clock *of[2];
  int steps;  /* of a leaf */
  int number; /* of those that were made */
};

/* What two clocks have come to. */
struct merged_clocks {
  const struct vector_clock *a, *b, *of_both;
};

/* A message so far. */
struct passage {
  const struct vector_clock *clock; /* that it passes on, NULL before it is sent */
  int buffer;                       /* that it is sent from */
  bool received, gone;
};

struct check {
  const struct plan *p;
  struct arena *arena;
  struct diags *d;
  bool ok;
  int n;                /* devices: all, or those of the part; below by their place among these, see place */
  int *devices, *place; /* by place: the number in the plan; and by that the place, -1: none */
  int next;             /* messages of a part that are done, all those before them, too */
  int bits;             /* of a place */
  int nclocks;          /* that were made */
  struct merged_clocks *merged; /* nmerged places, a power of two */
  unsigned nmerged;
  const struct vector_clock **clocks;       /* by device: of the others */
  int *pc;                                  /* by device */
  int *here;                                /* by device: 1 + the collective that it has come to last */
  int *met;                                 /* by collective: how many of its devices have come there */
  const struct vector_clock **signal_clock; /* by signal: that it passes on, NULL before it is given */
  struct passage *passages;                 /* by message */
  struct state *states;                     /* by buffer */
  const struct step *step;                  /* at hand */
  int device;
};

static void breach(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void breach(struct check *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *what = arena_vprintf(c->arena, fmt, ap);
  va_end(ap);
  c->ok = false;
  const struct target *t = &c->p->graph->config.target;
  int device = c->device < c->n ? c->devices[c->device] : t->ndevices;
  if (c->step && device < t->ndevices)
    diag_error(c->d, c->step->node ? c->step->node->loc : LOC_NONE, "plan %s, %s, step %d (%s): %s",
               c->p->graph->name, t->devices[device].text, c->pc[c->device],
               c->step->node ? c->step->node->name : "?", what);
  else
    diag_error(c->d, LOC_NONE, "plan %s: %s", c->p->graph->name, what);
}

static bool is_write(const struct step *s, int operand) { return operand >= s->noperands - step_results(s); }

static int steps_of(const struct check *c, const struct vector_clock *v, int device) {
  for (int bit = c->bits - 1; v && bit >= 0; bit--) v = v->of[device >> bit & 1];
  return v ? v->steps : 0;
}

static bool known(const struct check *c, struct buffer_access a) {
  return a.step < 0 || a.device == c->device || steps_of(c, c->clocks[c->device], a.device) > a.step;
}

/* Whether whatever has read it has done so by now. */
static bool reads_known(const struct check *c, const struct state *s) {
  const struct buffer_read *r = s->reads;
  while (r && known(c, r->at)) r = r->before;
  return !r;
}

static void check_bounds(struct check *c, int operand) {
  const struct operand *o = &c->step->operands[operand];
  const struct plan_buffer *b = &c->p->buffers[o->buffer];
  int64_t bytes = step_extent(c->step, operand);
  if (o->offset < 0 || o->offset + bytes > b->bytes)
    breach(c, "operand %d reaches %lld bytes into %s, which has %lld", operand,
           (long long)(o->offset + bytes), b->name, (long long)b->bytes);
  int at = c->pc[c->device], of = c->place[b->device];
  if (of == c->device && (at < b->first || at > b->last))
    breach(c, "%s lives from step %d to %d only", b->name, b->first, b->last);
  if (of != c->device && b->last < c->pc[of]) breach(c, "%s may have died before it is read", b->name);
}

static void check_read(struct check *c, int operand) {
  int buffer = c->step->operands[operand].buffer;
  const struct plan_buffer *b = &c->p->buffers[buffer];
  struct state *s = &c->states[buffer];
  if (s->write.step == INT_MAX)
    breach(c, "%s is read before it is written", b->name);
  else if (!known(c, s->write))
    breach(c, "%s is read without a wait for what writes it", b->name);
  struct buffer_access at = {c->device, c->pc[c->device]};
  if (s->reads && s->reads->at.device == c->device) {
    s->reads->at = at;
    return;
  }
  struct buffer_read *r = arena_new(c->arena, struct buffer_read);
  *r = (struct buffer_read){at, s->reads};
  s->reads = r;
}

static void check_write(struct check *c, int operand) {
  int buffer = c->step->operands[operand].buffer;
  const struct plan_buffer *b = &c->p->buffers[buffer];
  struct state *s = &c->states[buffer];
  if (c->place[b->device] != c->device) breach(c, "%s of another device is written", b->name);
  if (s->leaving) breach(c, "%s is overwritten while it is being sent", b->name);
  if (b->region == REGION_CONSTANT) breach(c, "the constant %s is written", b->name);
  if (s->write.step != INT_MAX && !known(c, s->write))
    breach(c, "%s is written twice without a wait between", b->name);
  if (!reads_known(c, s)) breach(c, "%s is overwritten without a wait for what reads it", b->name);
  s->reads = NULL;
  s->write = (struct buffer_access){c->device, c->pc[c->device]};
}

/* Whether two results of a kernel lie beside each other in each row of what they are parts of: as far apart as that,
 * modulo the length of a row, which all outer strides are multiples of. */
static bool beside(const struct step *s, int a, int b, int64_t bytes_apart) {
  if (s->kind != STEP_KERNEL || !is_write(s, a) || !is_write(s, b)) return false;
  const struct kernel *k = s->kernel;
  int64_t size = dtype_size((enum dtype)k->args[a].dtype), apart = bytes_apart / size;
  const int64_t *strides = s->sizes + k->rank + (int64_t)a * k->rank,
                *others = s->sizes + k->rank + (int64_t)b * k->rank;
  if (dtype_size((enum dtype)k->args[b].dtype) != size || bytes_apart % size || apart <= 0) return false;
  for (int row = 0; row < k->rank; row++) {
    int64_t length = strides[row], wide = 1;
    bool rows = length > 0;
    for (int d = 0; d < k->rank && rows; d++) {
      if (s->sizes[d] == 1) continue;
      rows = strides[d] == others[d] && strides[d] >= 0 && (strides[d] < length || strides[d] % length == 0);
      if (strides[d] < length) wide += (s->sizes[d] - 1) * strides[d];
    }
    if (rows && wide <= apart % length && apart % length + wide <= length) return true;
  }
  return false;
}

/* Within a step: what is written is no operand, or is one element by element, or the results are parts of one value. */
static void check_in_place(struct check *c, int out) {
  const struct step *s = c->step;
  const struct plan_buffer *to = &c->p->buffers[s->operands[out].buffer];
  int64_t begin = to->offset + s->operands[out].offset, end = begin + step_extent(s, out);
  for (int i = 0; i < s->noperands; i++) {
    const struct plan_buffer *b = &c->p->buffers[s->operands[i].buffer];
    int64_t at = b->offset + s->operands[i].offset, stop = at + step_extent(s, i);
    if (i == out || b->device != to->device || b->region != to->region || at >= end || stop <= begin ||
        at == stop || begin == end)
      continue;
    if (!is_write(s, i) && at == begin && step_in_place(s, i, out)) continue;
    if (b == to && (at > begin ? beside(s, i, out, at - begin) : beside(s, out, i, begin - at))) continue;
    breach(c, "%s overlaps operand %d, %s", to->name, i, b->name);
  }
}

/* The later of two, device by device; one of them where that is all of it. Many devices take in the same two, so
 * results are kept, as long as no others need the place. */
static const struct vector_clock *later(struct check *c, const struct vector_clock *a,
                                        const struct vector_clock *b) {
  if (a == b || !b) return a;
  if (!a) return b;
  struct merged_clocks *m =
      &c->merged[((unsigned)a->number * 40503u + (unsigned)b->number) & (c->nmerged - 1)];
  if (m->a == a && m->b == b) return m->of_both;
  struct vector_clock v = {{later(c, a->of[0], b->of[0]), later(c, a->of[1], b->of[1])},
                           a->steps > b->steps ? a->steps : b->steps,
                           0};
  const struct vector_clock *y = NULL;
  if (v.of[0] == a->of[0] && v.of[1] == a->of[1] && v.steps == a->steps) y = a;
  if (!y && v.of[0] == b->of[0] && v.of[1] == b->of[1] && v.steps == b->steps) y = b;
  v.number = y ? 0 : ++c->nclocks;
  if (!y) y = arena_copy(c->arena, &v, sizeof v);
  *m = (struct merged_clocks){a, b, y};
  return y;
}

/* What the device knows behind this step. */
static const struct vector_clock *passed_on(struct check *c) {
  struct vector_clock *v = arena_new(c->arena, struct vector_clock);
  v->steps = c->pc[c->device] + 1;
  v->number = ++c->nclocks;
  for (int bit = 0; bit < c->bits; bit++) {
    struct vector_clock *above = arena_new(c->arena, struct vector_clock);
    above->of[c->device >> bit & 1] = v;
    above->number = ++c->nclocks;
    v = above;
  }
  return later(c, c->clocks[c->device], v);
}

static void take_in(struct check *c, const struct vector_clock *clock) {
  c->clocks[c->device] = later(c, c->clocks[c->device], clock);
}

static void run_message(struct check *c) {
  const struct step *s = c->step;
  struct passage *m = &c->passages[s->message->number];
  if (s->kind == STEP_SEND) {
    if (m->clock) breach(c, "message %d is sent twice", s->message->number);
    m->clock = passed_on(c);
    m->buffer = s->operands[0].buffer;
    c->states[m->buffer].leaving++;
  } else if (s->kind == STEP_RECEIVE) {
    if (m->received) breach(c, "message %d is received twice", s->message->number);
    m->received = true;
    if (m->clock) take_in(c, m->clock);
  } else {
    if (m->gone) breach(c, "message %d is waited for twice", s->message->number);
    m->gone = true;
    c->states[m->buffer].leaving--;
  }
}

static void run_step(struct check *c) {
  const struct step *s = c->step;
  if (s->kind == STEP_SIGNAL) {
    if (c->signal_clock[s->signal]) breach(c, "signal %d is given twice", s->signal);
    c->signal_clock[s->signal] = passed_on(c);
    return;
  }
  if (s->kind == STEP_WAIT) {
    take_in(c, c->signal_clock[s->signal]);
    return;
  }
  if (s->message) run_message(c);
  for (int i = 0; i < s->noperands; i++) {
    check_bounds(c, i);
    if (!is_write(s, i)) check_read(c, i);
  }
  for (int i = 0; i < s->noperands; i++)
    if (is_write(s, i)) {
      check_in_place(c, i);
      check_write(c, i);
    }
}

/* The buffers of the device that die at this step: who reads them elsewhere must be known to be done. */
static void check_deaths(struct check *c, const int *dying, int count) {
  for (int i = 0; i < count; i++) {
    const struct state *s = &c->states[dying[i]];
    if (!reads_known(c, s))
      breach(c, "%s dies while another device may read it", c->p->buffers[dying[i]].name);
    if (s->leaving) breach(c, "%s dies while it is being sent", c->p->buffers[dying[i]].name);
  }
}

/* Whether all devices have come to their part of it, as this one now has. */
static bool have_met(struct check *c, const struct collective *m) {
  if (c->here[c->device] != m->number + 1) c->met[m->number]++;
  c->here[c->device] = m->number + 1;
  return c->met[m->number] >= m->count;
}

/* In the part of one process: all that is smaller has been sent and received. */
static bool is_next(struct check *c, const struct step *s) {
  const struct passage *m = c->passages;
  while (c->next < c->p->nmessages && (m[c->next].clock || m[c->next].received)) c->next++;
  return s->message->number < c->next + (s->kind == STEP_RECEIVE);
}

static bool can_run(struct check *c, const struct step *s) {
  if (s->kind == STEP_ALL_REDUCE) return have_met(c, s->collective);
  if (c->p->part && (s->kind == STEP_RECEIVE || s->kind == STEP_SENT)) return is_next(c, s);
  if (s->kind == STEP_RECEIVE) return c->passages[s->message->number].clock != NULL;
  /* Where the network keeps nothing, a message is gone when it has been received. */
  if (s->kind == STEP_SENT) return c->passages[s->message->number].received;
  return s->kind != STEP_WAIT || c->signal_clock[s->signal] != NULL;
}

static int by_death(const void *x, const void *y, void *user) {
  const struct plan_buffer *b = user;
  int i = *(const int *)x, k = *(const int *)y;
  if (b[i].device != b[k].device) return b[i].device < b[k].device ? -1 : 1;
  return b[i].last != b[k].last ? (b[i].last < b[k].last ? -1 : 1) : i - k;
}

static bool is_sent_here(const struct check *c, const struct message *m) {
  return plan_process(c->p, m->from) == c->p->part - 1;
}

static void run(struct check *c) {
  const struct plan *p = c->p;
  int *deaths = arena_new_array(c->arena, (size_t)p->nbuffers, int);
  int *next = arena_new_array(c->arena, (size_t)c->n + 1, int), here = 0; /* of each device, into deaths */
  for (int i = 0; i < p->nbuffers; i++) {
    int device = c->place[p->buffers[i].device];
    if (device < 0) continue;
    deaths[here++] = i;
    next[device + 1]++;
  }
  qsort_r(deaths, (size_t)here, sizeof *deaths, by_death, p->buffers);
  for (int d = 0; d < c->n; d++) next[d + 1] += next[d];
  int *end = arena_copy(c->arena, next + 1, (size_t)c->n * sizeof *end);
  for (bool moved = true; moved;) {
    moved = false;
    for (c->device = 0; c->device < c->n; c->device++) {
      int d = c->device;
      const struct device_plan *dp = &p->devices[c->devices[d]];
      for (; c->pc[d] < dp->nsteps; c->pc[d]++) {
        c->step = &dp->steps[c->pc[d]];
        if (!can_run(c, c->step)) break;
        run_step(c);
        int from = next[d];
        while (next[d] < end[d] && p->buffers[deaths[next[d]]].last <= c->pc[d]) next[d]++;
        check_deaths(c, deaths + from, next[d] - from);
        moved = true;
      }
    }
  }
  for (c->device = 0; c->device < c->n; c->device++) {
    const struct device_plan *dp = &p->devices[c->devices[c->device]];
    if (c->pc[c->device] >= dp->nsteps) continue;
    c->step = &dp->steps[c->pc[c->device]];
    if (c->step->kind == STEP_ALL_REDUCE)
      breach(c, "the devices of collective %d do not meet: they wait for each other",
             c->step->collective->number);
    else if (c->step->message && p->part)
      breach(c, "message %d comes before message %d, which is smaller: the processes may wait for each other",
             c->step->message->number, c->next);
    else if (c->step->message)
      breach(c, "message %d is not %s: the processes wait for each other", c->step->message->number,
             c->step->kind == STEP_RECEIVE ? "sent" : "received");
    else
      breach(c, "nothing gives signal %d: the devices wait for each other", c->step->signal);
  }
  c->step = NULL;
  for (int i = 0; c->ok && i < p->nmessages; i++)
    if (p->part && c->passages[i].received)
      continue;
    else if (!c->passages[i].received && !(p->part && c->passages[i].clock))
      breach(c, "message %d is not %s", i, is_sent_here(c, &p->messages[i]) ? "sent" : "received");
    else if (!c->passages[i].gone)
      breach(c, "nothing waits until message %d is gone", i);
}

static int by_birth(const void *x, const void *y, void *user) {
  const struct plan_buffer *b = user;
  int i = *(const int *)x, k = *(const int *)y;
  if (b[i].device != b[k].device) return b[i].device < b[k].device ? -1 : 1;
  return b[i].first != b[k].first ? (b[i].first < b[k].first ? -1 : 1) : i - k;
}

/* No two buffers share bytes of a region while both are alive. */
static void check_overlaps(struct check *c) {
  const struct plan *p = c->p;
  int *order = arena_new_array(c->arena, (size_t)p->nbuffers, int);
  int *alive = arena_new_array(c->arena, (size_t)p->nbuffers, int), count = 0, device = -1;
  for (int i = 0; i < p->nbuffers; i++) order[i] = i;
  qsort_r(order, (size_t)p->nbuffers, sizeof *order, by_birth, p->buffers);
  for (int i = 0; i < p->nbuffers; i++) {
    const struct plan_buffer *b = &p->buffers[order[i]];
    if (c->place[b->device] < 0 || b->bytes == 0) continue;
    if (b->device != device) count = 0;
    device = b->device;
    int kept = 0;
    for (int k = 0; k < count; k++) {
      const struct plan_buffer *other = &p->buffers[alive[k]];
      if (other->last < b->first) continue;
      alive[kept++] = alive[k];
      if (other->region == b->region && other->offset < b->offset + b->bytes &&
          b->offset < other->offset + other->bytes)
        breach(c, "%s and %s are alive at the same time and overlap", other->name, b->name);
    }
    alive[kept++] = order[i];
    count = kept;
  }
}

static bool check_buffers(struct check *c) {
  for (int i = 0; i < c->p->nbuffers; i++) {
    const struct plan_buffer *b = &c->p->buffers[i];
    bool known = b->device >= 0 && b->device < c->p->ndevices;
    if (known && c->p->part && b->region == REGION_VARIABLE && c->place[b->device] < 0)
      continue; /* held there */
    if (!known || c->place[b->device] < 0) {
      breach(c, "%s is on no device of the plan", b->name);
      return false;
    }
    if (b->offset % 64 != 0 || b->offset < 0 || b->first < 0 ||
        b->offset + b->bytes > c->p->devices[b->device].bytes[b->region])
      breach(c, "%s lies outside its region", b->name);
  }
  return true;
}

static void check_collective(struct check *c, const struct step *s) {
  const struct collective *m = s->collective;
  if (!m || m->number < 0 || m->number >= c->p->ncollectives || m != &c->p->collectives[m->number])
    breach(c, "there is no such collective");
  else if (collective_rank_of(m, c->devices[c->device]) < 0)
    breach(c, "collective %d is not for this device", m->number);
  else if (s->bytes != m->elements * dtype_size(m->dtype))
    breach(c, "%lld bytes are no %lld elements of %s", (long long)s->bytes, (long long)m->elements,
           dtype_name(m->dtype));
}

static void check_message(struct check *c, const struct step *s) {
  const struct message *m = s->message;
  if (!m || m->number < 0 || m->number >= c->p->nmessages || m != &c->p->messages[m->number])
    breach(c, "there is no such message");
  else if (c->devices[c->device] != (s->kind == STEP_RECEIVE ? m->to : m->from))
    breach(c, "message %d is not for this device", m->number);
  else if (plan_process(c->p, m->from) == plan_process(c->p, m->to))
    breach(c, "message %d stays within its process", m->number);
  else if (s->node != m->node)
    breach(c, "message %d is another copy, %s", m->number, m->node->name);
  else if (m->bytes != type_bytes(&m->node->type))
    breach(c, "message %d has %lld bytes, and its value %lld", m->number, (long long)m->bytes,
           (long long)type_bytes(&m->node->type));
  else if (s->kind != STEP_SENT && s->bytes != m->bytes)
    breach(c, "message %d has %lld bytes, not %lld", m->number, (long long)m->bytes, (long long)s->bytes);
  else if (s->noperands != (s->kind != STEP_SENT))
    breach(c, "message %d has %d operands", m->number, s->noperands);
}

/* Processes share no memory. */
static void check_process(struct check *c, const struct operand *o) {
  const struct plan_buffer *b = &c->p->buffers[o->buffer];
  if (plan_process(c->p, b->device) != plan_process(c->p, c->devices[c->device]))
    breach(c, "%s is of another process", b->name);
}

/* Nor signals: the process of who gives each, and of who waits. */
static void check_signals(struct check *c) {
  int *process = arena_new_array(c->arena, (size_t)c->p->nsignals, int); /* counted from 1 */
  for (int k = 0; k < c->n; k++)
    for (int i = 0, d = c->devices[k]; i < c->p->devices[d].nsteps; i++) {
      const struct step *s = &c->p->devices[d].steps[i];
      if (s->kind != STEP_SIGNAL && s->kind != STEP_WAIT) continue;
      int *of = &process[s->signal], here = plan_process(c->p, d) + 1;
      if (*of && *of != here)
        breach(c, "signal %d is given in one process and waited for in another", s->signal);
      *of = here;
    }
}

/* The steps inside are those of a plan of this device, which reads what it is given and writes its arena only. */
static void check_loop(struct check *c, const struct step *s) {
  const struct plan *body = s->loop->body;
  c->ok = plan_verify(body, c->d) && c->ok;
  if (s->noperands != s->node->ninputs + step_results(s) || body->noutputs != node_results(s->node))
    breach(c, "the loop has %d operands and %d results", s->noperands, body->noutputs);
  for (int i = 0; i < body->ndevices; i++)
    if (body->devices[i].nsteps && i != c->devices[c->device])
      breach(c, "a step of the loop is on another device");
  for (int i = 0; i < body->noutputs; i++)
    if (body->buffers[body->outputs[i].operand.buffer].region == REGION_VARIABLE)
      breach(c, "%s is what the loop was given", body->outputs[i].name);
  const struct device_plan *dp = &body->devices[c->devices[c->device]];
  for (int i = 0; i < dp->nsteps; i++)
    for (int k = 0; k < dp->steps[i].noperands; k++)
      if (is_write(&dp->steps[i], k) && body->buffers[dp->steps[i].operands[k].buffer].region != REGION_ARENA)
        breach(c, "step %d of the loop writes what it was given", i);
}

static bool check_steps(struct check *c) {
  for (c->device = 0; c->device < c->n; c->device++)
    for (int i = 0; i < c->p->devices[c->devices[c->device]].nsteps; i++) {
      const struct step *s = &c->p->devices[c->devices[c->device]].steps[i];
      if ((s->kind == STEP_SIGNAL || s->kind == STEP_WAIT) && (s->signal < 0 || s->signal >= c->p->nsignals))
        breach(c, "there is no signal %d", s->signal);
      if (s->kind == STEP_ALL_REDUCE) check_collective(c, s);
      if (s->kind == STEP_SCAN) check_loop(c, s);
      if (s->kind == STEP_KERNEL && s->segments.count > 1 && !kernel_splits(s->kernel))
        breach(c, "%s is in %d segments, and its kernel has none", s->node->name, s->segments.count);
      if (s->kind == STEP_SEND || s->kind == STEP_SENT || s->kind == STEP_RECEIVE) check_message(c, s);
      for (int k = 0; k < s->noperands; k++)
        if (s->operands[k].buffer < 0 || s->operands[k].buffer >= c->p->nbuffers)
          breach(c, "there is no buffer %d", s->operands[k].buffer);
        else
          check_process(c, &s->operands[k]);
    }
  if (c->ok) check_signals(c);
  for (int i = 1; c->ok && c->p->part && i < c->p->nmessages; i++)
    if (message_compare(c->p->messages[i - 1].node, c->p->messages[i].node) >= 0)
      breach(c, "message %d does not come before message %d", i - 1, i);
  return c->ok;
}

static void check_output(struct check *c, const struct plan_value *v, const struct operand *o) {
  const struct plan_buffer *b = &c->p->buffers[o->buffer];
  if (b->last != INT_MAX) breach(c, "the output %s dies at step %d", v->name, b->last);
  if (o->offset < 0 || o->offset + type_bytes(&v->type) > b->bytes)
    breach(c, "the output %s reaches outside its buffer", v->name);
}

/* The copies that processes have of an output are their own; losses and metrics all of them have, and the first has
 * everything. */
static void check_copies(struct check *c, const struct plan_value *v) {
  bool all = v->role != OUTPUT_VALUE && v->role != OUTPUT_PREDICT;
  for (int i = 0; v->copies && i < c->p->nprocesses; i++) {
    const struct operand *o = &v->copies[i];
    if (c->p->part && i != c->p->part - 1) {
      if (o->buffer >= 0) breach(c, "the part has a copy of the output %s for process %d", v->name, i);
      continue;
    }
    if (o->buffer < 0 && (all || i == 0)) breach(c, "process %d has no copy of the output %s", i, v->name);
    if (o->buffer < 0) continue;
    check_output(c, v, o);
    if (plan_process(c->p, c->p->buffers[o->buffer].device) != i)
      breach(c, "the copy of the output %s for process %d is another one's", v->name, i);
  }
}

/* Values that are there before the first step, and those that are read after the last. */
static void check_values(struct check *c) {
  for (int i = 0; i < c->p->ninputs; i++) c->states[c->p->inputs[i].operand.buffer].write.step = -1;
  for (int i = 0; i < c->p->noutputs; i++) {
    if (!c->p->part || c->p->outputs[i].operand.buffer >= 0)
      check_output(c, &c->p->outputs[i], &c->p->outputs[i].operand);
    check_copies(c, &c->p->outputs[i]);
  }
}

static bool is_written(const struct check *c, const struct operand *o) {
  return o->buffer < 0 || c->states[o->buffer].write.step != INT_MAX;
}

static void check_written(struct check *c, const struct plan_value *v) {
  bool written = is_written(c, &v->operand);
  for (int i = 0; v->copies && i < c->p->nprocesses; i++) written &= is_written(c, &v->copies[i]);
  if (!written) breach(c, "the output %s is never written", v->name);
}

static void find_devices(struct check *c) {
  const struct plan *p = c->p;
  c->devices = arena_new_array(c->arena, (size_t)p->ndevices, int);
  c->place = arena_new_array(c->arena, (size_t)p->ndevices, int);
  for (int d = 0; d < p->ndevices; d++) {
    bool here = !p->part || plan_process(p, d) == p->part - 1;
    c->place[d] = here ? c->n : -1;
    if (here) c->devices[c->n++] = d;
  }
}

bool plan_verify(const struct plan *p, struct diags *d) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct check c = {.p = p, .arena = a, .d = d, .ok = true};
  find_devices(&c);
  while (c.n > 1 << c.bits) c.bits++;
  c.clocks = arena_new_array(a, (size_t)c.n, const struct vector_clock *);
  c.nmerged = 16u << c.bits;
  c.merged = arena_new_array(a, c.nmerged, struct merged_clocks);
  c.pc = arena_new_array(a, (size_t)c.n, int);
  c.here = arena_new_array(a, (size_t)c.n, int);
  c.met = arena_new_array(a, (size_t)p->ncollectives, int);
  c.passages = arena_new_array(a, (size_t)p->nmessages, struct passage);
  c.signal_clock = arena_new_array(a, (size_t)p->nsignals, const struct vector_clock *);
  c.states = arena_new_array(a, (size_t)p->nbuffers, struct state);
  if (check_buffers(&c) && check_steps(&c)) {
    for (int i = 0; i < p->nbuffers; i++)
      c.states[i].write.step = p->buffers[i].region == REGION_ARENA ? INT_MAX : -1;
    check_values(&c);
    check_overlaps(&c);
    run(&c);
    for (int i = 0; c.ok && i < p->noutputs; i++) check_written(&c, &p->outputs[i]);
  }
  arena_destroy_guarded(a, &guard);
  return c.ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of random plans, checked by nothing but paths: all pairs of steps that touch the same bytes in the order that
 * the plan gives them keep it, and without any one of the waits, some do not. */
#include "ir/plan/queues.h"
#include "passes/pass.h"
#include "plan_random.h"
#include "planner/planner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* --- paths --- */

/* A graph of moments; edges lead to where they are added from later ones, too: it has no circles. */
struct moments {
  struct arena *arena;
  int count, words;
  uint64_t *before; /* by moment: a bit for each that comes before it, itself included */
  int (*edges)[2];
  int nedges, cap;
};

static struct moments moments_make(struct arena *a, int count) {
  struct moments m = {.arena = a, .count = count, .words = count / 64 + 1};
  m.before = arena_new_array(a, (size_t)count * (size_t)m.words, uint64_t);
  for (int i = 0; i < count; i++) m.before[i * m.words + i / 64] |= UINT64_C(1) << i % 64;
  return m;
}

static void add_edge(struct moments *m, int from, int to) {
  if (m->nedges == m->cap) {
    int cap = m->cap ? 2 * m->cap : 256;
    int(*edges)[2] = arena_alloc(m->arena, (size_t)cap * sizeof *edges);
    if (m->nedges) memcpy(edges, m->edges, (size_t)m->nedges * sizeof *edges);
    m->edges = edges;
    m->cap = cap;
  }
  m->edges[m->nedges][0] = from;
  m->edges[m->nedges++][1] = to;
}

static void find_paths(struct moments *m) {
  for (bool grown = true; grown;) {
    grown = false;
    for (int i = 0; i < m->nedges; i++) {
      uint64_t *to = &m->before[m->edges[i][1] * m->words];
      const uint64_t *from = &m->before[m->edges[i][0] * m->words];
      for (int w = 0; w < m->words; w++) {
        grown |= (from[w] & ~to[w]) != 0;
        to[w] |= from[w];
      }
    }
  }
}

static bool path(const struct moments *m, int from, int to) {
  return m->before[to * m->words + from / 64] >> from % 64 & 1;
}

/* --- the plan's order, and that of the queues --- */

/* Moments: each step of each device; of the queues, when it is given to its device and when it is done. */
struct scene {
  struct arena *arena;
  const struct plan *p;
  const enum manner *manners;
  const struct queues *q;
  int *first; /* by device: the number of its first step */
  int nsteps;
};

static int number_of(const struct scene *s, int device, int step) { return s->first[device] + step; }
static int given(const struct scene *s, int device, int step) { return number_of(s, device, step); }
static int done(const struct scene *s, int device, int step) {
  return s->nsteps + number_of(s, device, step);
}
static int beginning(const struct scene *s) { return 2 * s->nsteps; }
static int ending(const struct scene *s) { return 2 * s->nsteps + 1; }

/* From each signal to the waits for it. */
static void add_meetings(const struct scene *s, struct moments *m) {
  const struct plan *p = s->p;
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i < p->devices[d].nsteps; i++)
      for (int e = 0; e < p->ndevices && p->devices[d].steps[i].kind == STEP_SIGNAL; e++)
        for (int k = 0; k < p->devices[e].nsteps; k++)
          if (p->devices[e].steps[k].kind == STEP_WAIT &&
              p->devices[e].steps[k].signal == p->devices[d].steps[i].signal)
            add_edge(m, number_of(s, d, i), number_of(s, e, k));
}

static struct moments order_of_plan(const struct scene *s, struct arena *a) {
  struct moments m = moments_make(a, s->nsteps);
  for (int d = 0; d < s->p->ndevices; d++)
    for (int i = 1; i < s->p->devices[d].nsteps; i++)
      add_edge(&m, number_of(s, d, i - 1), number_of(s, d, i));
  add_meetings(s, &m);
  find_paths(&m);
  return m;
}

static bool works(const struct step *s) { return s->kind != STEP_SIGNAL && s->kind != STEP_WAIT; }

/* The last step of the queue before step `end`, or -1. */
static int last_before(const struct scene *s, int device, enum queue queue, int end) {
  int i = end - 1;
  while (i >= 0 && !(works(&s->p->devices[device].steps[i]) && s->q->devices[device].queue[i] == queue)) i--;
  return i;
}

static void add_waits(const struct scene *s, struct moments *m, int device, int step, int to,
                      const struct queue_wait *without) {
  for (const struct queue_wait *w = s->q->devices[device].waits[step]; w; w = w->next) {
    const struct queue_point *point = &s->q->points[w->point];
    int last = last_before(s, point->device, point->queue, point->after + 1);
    if (w != without) add_edge(m, last < 0 ? beginning(s) : done(s, point->device, last), to);
  }
}

static void add_steps(const struct scene *s, struct moments *m, int d, const struct queue_wait *without) {
  const struct device_plan *dp = &s->p->devices[d];
  bool at_once = s->manners[d] == MANNER_AT_ONCE;
  for (int i = 0; i < dp->nsteps; i++) {
    if (i > 0) add_edge(m, given(s, d, i - 1), given(s, d, i));
    if (i > 0 && at_once) add_edge(m, done(s, d, i - 1), given(s, d, i));
    add_edge(m, given(s, d, i), done(s, d, i));
    add_waits(s, m, d, i, at_once ? given(s, d, i) : done(s, d, i), without);
    if (!works(&dp->steps[i])) continue;
    enum queue queue = s->q->devices[d].queue[i];
    int before = last_before(s, d, queue, i);
    if (before >= 0) add_edge(m, done(s, d, before), done(s, d, i));
    if (before < 0 && queue == QUEUE_WORK) add_edge(m, beginning(s), done(s, d, i));
  }
  int last = last_before(s, d, QUEUE_WORK, dp->nsteps);
  if (last >= 0) add_edge(m, done(s, d, last), ending(s));
  add_waits(s, m, d, dp->nsteps, ending(s), without);
}

static struct moments order_of_queues(const struct scene *s, struct arena *a,
                                      const struct queue_wait *without) {
  struct moments m = moments_make(a, 2 * s->nsteps + 2);
  for (int d = 0; d < s->p->ndevices; d++) add_steps(s, &m, d, without);
  add_meetings(s, &m); /* of when they are given */
  find_paths(&m);
  return m;
}

/* --- what must keep its order --- */

struct bytes {
  int device, region;
  int64_t begin, end;
};

static struct bytes bytes_of(const struct plan *p, const struct step *s, int operand) {
  const struct plan_buffer *b = &p->buffers[s->operands[operand].buffer];
  int64_t begin = b->offset + s->operands[operand].offset;
  return (struct bytes){b->device, (int)b->region, begin, begin + step_extent(s, operand)};
}

/* One buffer is one thing: empty values, too. */
static bool conflict(const struct plan *p, const struct step *a, const struct step *b) {
  for (int i = 0; i < a->noperands; i++)
    for (int k = 0; k < b->noperands; k++) {
      if (i < a->noperands - step_results(a) && k < b->noperands - step_results(b)) continue;
      if (a->operands[i].buffer == b->operands[k].buffer) return true;
      struct bytes x = bytes_of(p, a, i), y = bytes_of(p, b, k);
      if (x.device == y.device && x.region == y.region && x.begin < y.end && y.begin < x.end) return true;
    }
  return false;
}

struct pair {
  int device[2], step[2];
};

static struct pair *conflicts(const struct scene *s, const struct moments *order, int *count) {
  struct pair *pairs = arena_new_array(s->arena, (size_t)s->nsteps * (size_t)s->nsteps, struct pair);
  const struct plan *p = s->p;
  *count = 0;
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i < p->devices[d].nsteps; i++)
      for (int e = 0; e < p->ndevices; e++)
        for (int k = 0; k < p->devices[e].nsteps; k++)
          if ((d != e || i != k) && path(order, number_of(s, d, i), number_of(s, e, k)) &&
              works(&p->devices[d].steps[i]) && works(&p->devices[e].steps[k]) &&
              conflict(p, &p->devices[d].steps[i], &p->devices[e].steps[k]))
            pairs[(*count)++] = (struct pair){{d, e}, {i, k}};
  return pairs;
}

/* Whether conflicts keep their order, everything comes behind the beginning, and the end behind everything that has not
 * been done when it was given. */
static bool in_order(const struct scene *s, const struct moments *m, const struct pair *pairs, int count) {
  for (int i = 0; i < count; i++) {
    const struct pair *x = &pairs[i];
    int to = s->manners[x->device[1]] == MANNER_AT_ONCE ? given(s, x->device[1], x->step[1])
                                                        : done(s, x->device[1], x->step[1]);
    if (!path(m, done(s, x->device[0], x->step[0]), to)) return false;
  }
  for (int d = 0; d < s->p->ndevices; d++)
    for (int i = 0; i < s->p->devices[d].nsteps && s->manners[d] != MANNER_AT_ONCE; i++)
      if (works(&s->p->devices[d].steps[i]) &&
          !(path(m, beginning(s), done(s, d, i)) && path(m, done(s, d, i), ending(s))))
        return false;
  return true;
}

/* --- the tests --- */

static int waits, copies; /* seen */

static void check_plan(struct scene *s) {
  struct arena *scratch = arena_create();
  const struct plan *p = s->p;
  int count;
  s->first = arena_new_array(s->arena, (size_t)p->ndevices, int);
  for (int d = 0; d < p->ndevices; d++) {
    s->first[d] = s->nsteps;
    s->nsteps += p->devices[d].nsteps;
  }
  struct moments order = order_of_plan(s, s->arena);
  const struct pair *pairs = conflicts(s, &order, &count);
  struct moments all = order_of_queues(s, scratch, NULL);
  assert_true(in_order(s, &all, pairs, count));
  int nwaits = 0;
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i <= p->devices[d].nsteps; i++) {
      if (i < p->devices[d].nsteps) copies += s->q->devices[d].queue[i] == QUEUE_COPIES;
      for (const struct queue_wait *w = s->q->devices[d].waits[i]; w; w = w->next, nwaits++) {
        arena_reset(scratch);
        struct moments m = order_of_queues(s, scratch, w);
        if (in_order(s, &m, pairs, count)) fail_msg("device %d need not wait before step %d", d, i);
      }
    }
  assert_int_equal(nwaits, s->q->nwaits);
  waits += nwaits;
  arena_destroy(scratch);
}

static void one_random(uint64_t seed, int nodes, int ndevices) {
  struct arena *a = arena_create(), *scratch = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct pass_ctx ctx = {a, scratch, &d};
  const struct graph *fused = pass_fuse(&ctx, random_graph(a, seed, nodes, ndevices, &d));
  const struct plan *p = plan_build(a, fused, &d);
  enum manner *manners = arena_new_array(a, (size_t)p->ndevices, enum manner);
  for (int i = 0; i < p->ndevices; i++)
    manners[i] = seed % 3 == 0   ? MANNER_IN_ORDER
                 : seed % 3 == 1 ? MANNER_COPY_QUEUE
                                 : (enum manner)(seed / 3 + (uint64_t)i) % 3;
  struct scene s = {.arena = a, .p = p, .manners = manners, .q = queues_make(a, p, manners)};
  check_plan(&s);
  arena_destroy(a);
  arena_destroy(scratch);
}

static int usual_rounds = 800; /* or as the first argument says */

static void random_plans(void **state) {
  (void)state;
  const char *more = getenv("TEST_GRAPHS");
  int rounds = more ? atoi(more) : usual_rounds;
  for (int i = 0; i < rounds; i++) one_random((uint64_t)i, 4 + i % 5 * 12, 1 + i % 4);
  print_message("%d waits, %d copies\n", waits, copies);
  assert_true(waits > rounds && copies > rounds / 2);
}

int main(int argc, char **argv) {
  if (argc > 1) usual_rounds = atoi(argv[1]);
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_plans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

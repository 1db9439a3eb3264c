/* SPDX-License-Identifier: Apache-2.0 */
/* Samples x strategies x towers 1..8 x batches 1..33: what one device and one tower compute, within bound.h;
 * and for a number of towers one hash of all variables after three steps, whatever the strategy and the
 * devices.
 *
 * A group is a sample, a batch and a number of towers; TEST_ROUNDS rounds (2; all: 8) have 33 of them each, one
 * for each batch. Samples and towers go round so that within a round every tower count meets every strategy,
 * and all rounds together have each pair of sample and batch, of batch and towers, and of sample and towers
 * (but for a sample that is too slow for many rows). A group runs on every strategy: each time on that of its
 * layouts that the sample, the batch and the towers have met least. TEST_SEED turns samples and towers, and
 * draws between layouts.
 *
 * TEST_NUMBERS=0 compares bits alone: bounds take most of the time, and say nothing of threads.
 *
 * With the argument "gpu": the same on GPUs, for fewer groups; exit status 77 where there are none. */
#include "tests/support/fixture.h"
#include "tests/support/random.h"
#include "tests/towers/matrix.h"

#include "ir/strategies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { BATCHES = 33, TOWERS = 8, LAYOUTS = 64, STEPS = 3 };

static const struct matrix_layout *layouts = cpu_layouts;
static struct engine pool[3]; /* cpu with 1, 2 and 3 threads; or the GPUs of one layout */
static int npool;
static bool gpus;   /* on GPUs */
static bool bounds; /* are looked at */
static struct rng drawn;
static int points, groups, wrong, exact, inside, unknown;

/* How often each has been met. */
static struct {
  int sample[SAMPLES][STRATEGIES], towers[TOWERS + 1][STRATEGIES], batch[BATCHES + 1][STRATEGIES];
  int layout_sample[LAYOUTS][SAMPLES], layout_towers[LAYOUTS][TOWERS + 1], layout_batch[LAYOUTS][BATCHES + 1];
} seen;

/* One sample with one batch on a number of towers. */
struct group {
  struct matrix_subject subject;
  int sample, towers;
  int64_t rows;
  struct expectation want;   /* of the first step */
  struct values first, last; /* variables after the first step and the last, on one device */
  struct values loss;        /* outputs of the last */
  uint64_t hash;
  /* Where the bits depend on more than towers: of the first layout of each order. */
  struct {
    int order;
    uint64_t hash;
  } others[LAYOUTS];
  int nothers;
};

/* GPUs are opened for one layout at a time. */
static struct engine *engine_for(int layout) {
  static int open = -1;
  if (!gpus) return &pool[layout % npool];
  if (layout == open) return &pool[0];
  while (npool) engine_close(&pool[--npool]);
  if (!engine_open_on(&pool[0], "cuda", layouts[layout].devices, 1 + layout % 2))
    fail_msg("%s", layouts[layout].devices);
  npool = 1;
  open = layout;
  return &pool[0];
}

static void complain(struct group *g, const struct matrix_layout *l, const char *what, const char *why) {
  if (!why || wrong++ >= 8) return;
  print_error("%s: %s: %.600s\n", matrix_text(&g->subject, l, g->towers), what, why);
  diags_init(&g->subject.diags, g->subject.arena);
}

/* A step from `before`, which it leaves as variables after it. */
static void one_step(struct group *g, const struct matrix_layout *l, int steps, struct values *variables,
                     struct values *outputs) {
  struct matrix_subject *s = &g->subject;
  *outputs = values_make(s->arena);
  complain(g, l, "no run",
           matrix_run(s, engine_for((int)(l - layouts)), s->model->train, l, g->towers, steps, variables,
                      outputs));
}

static void expect(struct group *g, const struct values *before, struct expectation *want) {
  struct matrix_subject *s = &g->subject;
  struct graph *train = matrix_graph(s, s->model->train, &layouts[0], 1);
  if (!expect_step(s->arena, train, g->rows, &s->inputs, before, &s->diags, want))
    fail_msg("%s", diags_text(&s->diags, false));
}

/* All steps on one device, each within bounds. */
static void reference(struct group *g) {
  struct matrix_subject *s = &g->subject;
  struct arena *a = s->arena;
  struct values now = values_copy(a, &s->before);
  one_step(g, &layouts[0], 1, &now, &g->loss); /* away from the zeros that variables begin with */
  s->before = values_copy(a, &now);
  for (int step = 0; step < STEPS; step++) {
    struct values before = values_copy(a, &now);
    one_step(g, &layouts[0], 1, &now, &g->loss);
    if (step == 0) g->first = values_copy(a, &now);
    if (step == 1 || !bounds) continue;
    struct expectation want;
    expect(g, &before, &want);
    if (step == 0) g->want = want;
    complain(g, &layouts[0], "bounds", expect_breach(a, &want, &before, &g->loss, &now));
    exact += (int)want.exact, inside += (int)want.inside, unknown += (int)want.unknown;
  }
  g->last = now;
  g->hash = matrix_hash(&now, &now) + matrix_hash(&g->loss, &g->loss);
}

static const char *another_hash(struct group *g, const struct matrix_layout *l, uint64_t hash) {
  for (int i = 0; i < g->nothers; i++)
    if (g->others[i].order == l->order) return g->others[i].hash == hash ? NULL : "not as before";
  g->others[g->nothers].order = l->order;
  g->others[g->nothers++].hash = hash;
  return NULL;
}

static void try_layout(struct group *g, const struct matrix_layout *l) {
  struct matrix_subject *s = &g->subject;
  struct arena *a = s->arena;
  struct values after = values_copy(a, &s->before), outputs;
  if (l->bits == OF_DEVICES && bounds) {
    one_step(g, l, 1, &after, &outputs);
    complain(g, l, "bounds", expect_breach(a, &g->want, &s->before, &outputs, &after));
    after = values_copy(a, &s->before);
  }
  one_step(g, l, STEPS, &after, &outputs);
  uint64_t hash = matrix_hash(&g->last, &after) + matrix_hash(&g->loss, &outputs);
  points++;
  if (l->bits != OF_TOWERS) {
    complain(g, l, "another hash", another_hash(g, l, hash));
    return;
  }
  if (hash == g->hash) return;
  const char *why = values_difference(a, &g->last, &after);
  if (!why) why = values_difference(a, &g->loss, &outputs);
  complain(g, l, "another hash than on one device", why ? why : "but no other number");
}

/* Evaluation and prediction, with what training has left. */
static void try_entries(struct group *g, const struct matrix_layout *l) {
  struct matrix_subject *s = &g->subject;
  const struct graph *const entries[] = {s->model->eval, s->model->predict};
  for (int k = 0; k < 2; k++) {
    struct values outputs[2];
    for (int i = 0; entries[k] && i < 2; i++) {
      const struct matrix_layout *on = i ? l : &layouts[0];
      struct values variables = values_copy(s->arena, &g->last);
      outputs[i] = values_make(s->arena);
      complain(g, on, entries[k]->name,
               matrix_run(s, engine_for((int)(on - layouts)), entries[k], on, g->towers, 1, &variables,
                          &outputs[i]));
    }
    if (entries[k]) complain(g, l, entries[k]->name, values_difference(s->arena, &outputs[0], &outputs[1]));
  }
}

/* The layout of the strategy that has been met least; -1: there is none. */
static int choose(const struct group *g, int strategy, bool asynchronous) {
  int best = -1, least = 0;
  for (int i = 0; layouts[i].devices; i++) {
    if ((int)layouts[i].strategy != strategy || layouts[i].config.asynchronous != asynchronous) continue;
    int met =
        seen.layout_sample[i][g->sample] + seen.layout_towers[i][g->towers] + seen.layout_batch[i][g->rows];
    met = 4 * met + rng_below(&drawn, 4);
    if (best >= 0 && met >= least) continue;
    best = i, least = met;
  }
  if (best < 0) return best;
  seen.layout_sample[best][g->sample]++, seen.layout_towers[best][g->towers]++,
      seen.layout_batch[best][g->rows]++;
  seen.sample[g->sample][strategy]++, seen.towers[g->towers][strategy]++, seen.batch[g->rows][strategy]++;
  return best;
}

static void try_group(int sample, int64_t rows, int towers) {
  struct group g = {.sample = sample, .towers = towers, .rows = rows};
  matrix_begin(&g.subject, &matrix_samples[sample], &layouts[0], rows, 100 * (uint64_t)sample, engine_for(0));
  reference(&g);
  for (int k = 0; k < STRATEGIES; k++) {
    int i = choose(&g, k, false);
    if (i < 0) continue;
    try_layout(&g, &layouts[i]);
    if (groups % STRATEGIES == k) try_entries(&g, &layouts[i]);
  }
  for (int k = 0; k < 2 && rows >= towers; k++) { /* the same number of workers, two at a time */
    int i = choose(&g, WITH_parameter_server, true);
    if (i >= 0) try_layout(&g, &layouts[i]);
  }
  groups++;
  matrix_end(&g.subject);
}

static void try_round(int round, uint64_t seed) {
  for (int b = 0; b < BATCHES; b++) {
    int sample = (int)((uint64_t)(b + round) + seed) % SAMPLES;
    if (matrix_samples[sample].most_rows && b >= matrix_samples[sample].most_rows)
      sample = (sample + 1 + round % 7) % SAMPLES;
    int towers = 1 + (int)((uint64_t)(5 * b + b / 8 + 3 * round) + seed / 8) % TOWERS;
    try_group(sample, b + 1, towers);
  }
}

/* On GPUs: some samples and batches. */
static void try_gpus(uint64_t seed) {
  static const int64_t rows[] = {1, 2, 3, 7, 16, 33};
  for (int i = 0; i < (int)number_from("TEST_ROUNDS", 2) * 6; i++) {
    int sample = (int)((uint64_t)i + seed) % SAMPLES, b = (int)((uint64_t)(i + i / 6) + seed / 8) % 6;
    if (matrix_samples[sample].most_rows) continue; /* simulated GPUs run on the host, and slowly */
    try_group(sample, rows[b], 1 + (3 * i + (int)(seed / 64)) % TOWERS);
  }
}

static void each_pair_is_met(void) {
  int missing = 0;
  for (int k = 0; k < STRATEGIES; k++) {
    if (strategies[k].reach == REACH_PLUGIN) continue; /* they run whole programs: tests/pjrt has them */
    for (int i = 0; i < SAMPLES; i++) missing += !seen.sample[i][k];
    for (int i = 1; i <= TOWERS; i++) missing += !seen.towers[i][k];
    for (int i = 1; i <= BATCHES; i++) missing += !seen.batch[i][k];
  }
  assert_int_equal(missing, 0);
}

static bool find_gpus(void);

static void matrix(void **state) {
  (void)state;
  if (gpus && !find_gpus()) skip();
  uint64_t seed = number_from("TEST_SEED", 0);
  int rounds = (int)number_from("TEST_ROUNDS", 2);
  drawn.state = seed;
  bounds = number_from("TEST_NUMBERS", 1) != 0;
  for (int r = 0; r < rounds && !gpus; r++) try_round(r, seed);
  if (gpus) try_gpus(seed);
  print_message(
      "%d groups, %d points; of the numbers after a step %d exact, %d within bounds, %d of any value\n",
      groups, points, exact, inside, unknown);
  if (!gpus) each_pair_is_met();
  assert_true(points > 0);
  assert_int_equal(wrong, 0);
}

static int open_pool(void **state) {
  (void)state;
  for (; !gpus && npool < 3; npool++)
    if (!engine_open(&pool[npool], NULL, npool + 1)) return 1;
  return 0;
}

static int close_pool(void **state) {
  (void)state;
  while (npool) engine_close(&pool[--npool]);
  return 0;
}

/* The layouts for which there are enough GPUs; false if there are none at all. Not before the test has begun:
 * simulated GPUs catch signals, and so does cmocka. */
static bool find_gpus(void) {
  static struct matrix_layout found[LAYOUTS];
  bool simulated;
  int count = gpus_found(&simulated), n = 0;
  for (int i = 0; gpu_layouts[i].devices; i++)
    if (matrix_gpus(&gpu_layouts[i]) <= count) found[n++] = gpu_layouts[i];
  layouts = found;
  return count > 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(matrix)};
  gpus = argc > 1 && strcmp(argv[1], "gpu") == 0;
  int failed = cmocka_run_group_tests(tests, open_pool, close_pool);
  return gpu_status(failed);
}

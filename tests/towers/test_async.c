/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous training against the same thing by hand: workers apply their own gradients in order, each computed from
 * the version that its staleness allows, each counting its own rows. A line is fitted by momentum; in f64 the two agree
 * to a few units in the last place. The bits do not depend on the number of threads. */
#include "passes/pass.h"
#include "tests/support/engine.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* loss = mean (w x - y)^2 + |w|^2 / 8: the last term has a gradient of its own, which must be as old as the rest. */
static const char model[] =
    "graph line.train {\n x = input : f64[B]\n y = input : f64[B]\n count = variable : i64[]\n"
    " w = variable {trainable=1} : f64[4]\n w.m = variable {slot=\"w\"} : f64[4]\n seen = variable : f64[]\n"
    " ws = reduce_sum w {axes=[0]}\n wr = broadcast ws {axes=[]} : f64[B]\n p = mul x, wr\n d = sub p, y\n q "
    "= square d\n"
    " s = reduce_sum q {axes=[0]}\n n = batch_size : f64[]\n mean = div s, n\n w2 = square w\n l2 = "
    "reduce_sum w2 {axes=[0]}\n"
    " eighth = constant {value=0.125} : f64[]\n l2.part = mul l2, eighth\n loss = add mean, l2.part\n"
    " w.grad = gradient loss, w\n keep = constant {value=0.5} : f64[]\n keep.4 = broadcast keep {axes=[]} : "
    "f64[4]\n"
    " w.m.old = mul w.m, keep.4\n w.m.next = add w.m.old, w.grad\n rate = broadcast eighth {axes=[]} : "
    "f64[4]\n"
    " w.step = mul w.m.next, rate\n w.next = sub w, w.step\n one = constant {value=1} : i64[]\n count.next = "
    "add count, one\n"
    " seen.old = mul seen, keep\n seen.next = add seen.old, mean\n w.update = assign w, w.next\n"
    " w.m.update = assign w.m, w.m.next\n count.update = assign count, count.next\n seen.update = assign "
    "seen, seen.next\n"
    " loss loss\n update w.update\n update w.m.update\n update count.update\n update seen.update\n}\n";

static struct engine engines[3];

static int open_engines(void **state) {
  (void)state;
  return !engine_open(&engines[0], NULL, 1) || !engine_open(&engines[1], NULL, 3) ||
         !engine_open(&engines[2], "interp", 1);
}

static int close_engines(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) engine_close(&engines[i]);
  return 0;
}

enum { MAX_WORKERS = 4, MAX_ROWS = 16, STEPS = 3 };

struct line {
  double w[4], m[4], seen;
  int64_t count;
};

/* One global step by hand. */
static double by_hand(struct line *l, const double *x, const double *y, int rows, int towers, int workers,
                      int staleness) {
  struct line versions[MAX_WORKERS + 1];
  double loss = 0;
  versions[0] = *l;
  for (int i = 0, tower = 0, row = 0; i < workers; i++) {
    struct line next = versions[i];
    const struct line *read = &versions[i > staleness ? i - staleness : 0];
    double sum = read->w[0] + read->w[1] + read->w[2] + read->w[3], squares = 0, grad = 0;
    int own = 0;
    for (; tower < towers && tower_device(tower, towers, workers) == i; tower++)
      own += (int)tower_rows(tower, towers, rows);
    for (int end = row + own; row < end; row++) {
      double d = sum * x[row] - y[row];
      squares += d * d;
      grad += 2 * d * x[row] / own;
    }
    loss += squares / rows;
    for (int k = 0; own && k < 4; k++) {
      next.m[k] = next.m[k] / 2 + grad + read->w[k] / 4;
      next.w[k] -= next.m[k] / 8;
    }
    if (own) next.seen = next.seen / 2 + squares / own;
    next.count += own > 0;
    versions[i + 1] = next;
  }
  for (int k = 0; k < 4; k++) loss += l->w[k] * l->w[k] / 8;
  *l = versions[workers];
  return loss;
}

static void put(struct values *v, const char *name, int count, const double *data) {
  struct type t = type_make(DT_F64, 1, (int64_t[]){count});
  values_put(v, name, &t, data);
}

static void near(const char *layout, const char *what, double got, double want) {
  if (fabs(got - want) > 64 * 0x1p-53 * (1 + fabs(want)))
    fail_msg("%s: %s is %.17g, not %.17g", layout, what, got, want);
}

static void check(int workers, int towers, int rows, int staleness, int64_t min_part_bytes) {
  struct arena *a = arena_create();
  const char *layout =
      arena_printf(a, "%d workers, %d towers, %d rows, staleness %d", workers, towers, rows, staleness);
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_parse(a, source_make(a, "model", model, strlen(model)), &d);
  if (!g) fail_msg("%s\n%s", layout, diags_text(&d, false));
  g->config = (struct config){.batch = rows,
                              .towers = towers,
                              .asynchronous = true,
                              .staleness = staleness,
                              .min_part_bytes = min_part_bytes};
  assert_true(cluster_parse(a, arena_printf(a, "worker=%d;ps=2", workers), NULL, &g->config.target, &d));
  double x[MAX_ROWS], y[MAX_ROWS];
  for (int i = 0; i < rows; i++) {
    x[i] = 0.25 * (i % 5) - 0.5;
    y[i] = 0.125 * (i % 7) + 0.25;
  }
  struct values inputs = values_make(a), before = values_make(a), after[3], outputs[3];
  put(&inputs, "x", rows, x);
  put(&inputs, "y", rows, y);
  struct line l = {.w = {0.5, -0.25, 1, 0.75}, .m = {0.125, 0, -0.5, 0.25}, .seen = 1, .count = 3};
  struct type i64 = type_scalar(DT_I64), f64 = type_scalar(DT_F64);
  put(&before, "w", 4, l.w);
  put(&before, "w.m", 4, l.m);
  values_put(&before, "count", &i64, &l.count);
  values_put(&before, "seen", &f64, &l.seen);
  struct plan *p = engine_plan(a, g, &d);
  if (!p) fail_msg("%s\n%s", layout, diags_text(&d, false));
  for (int e = 0; e < 3; e++) {
    after[e] = values_copy(a, &before);
    outputs[e] = values_make(a);
    if (!engine_run(&engines[e], p, &inputs, &after[e], &outputs[e], STEPS, &d))
      fail_msg("%s\n%s", layout, diags_text(&d, false));
  }
  double loss = 0;
  for (int i = 0; i < STEPS; i++) loss = by_hand(&l, x, y, rows, towers, workers, staleness);
  for (int e = 0; e < 3; e++) {
    near(layout, "loss", *(double *)values_get(&outputs[e], "loss")->data, loss);
    near(layout, "seen", *(double *)values_get(&after[e], "seen")->data, l.seen);
    for (int k = 0; k < 4; k++) {
      near(layout, "w", ((double *)values_get(&after[e], "w")->data)[k], l.w[k]);
      near(layout, "w.m", ((double *)values_get(&after[e], "w.m")->data)[k], l.m[k]);
    }
    assert_int_equal(*(int64_t *)values_get(&after[e], "count")->data, l.count);
  }
  assert_memory_equal(values_get(&after[0], "w")->data, values_get(&after[1], "w")->data, sizeof l.w);
  arena_destroy(a);
}

static void workers_in_turn(void **state) {
  (void)state;
  for (int workers = 1; workers <= MAX_WORKERS; workers++)
    for (int staleness = 0; staleness <= workers; staleness++) {
      check(workers, workers, 12, staleness, 0);
      check(workers, 2 * workers, 13, staleness, 0);
      check(workers, workers + 1, 9, staleness, 8);
    }
}

/* The last workers have nothing to apply. */
static void workers_without_rows(void **state) {
  (void)state;
  for (int staleness = 0; staleness <= 3; staleness++) {
    check(4, 4, 2, staleness, 0);
    check(4, 8, 3, staleness, 0);
    check(3, 3, 1, staleness, 8);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(workers_in_turn),
                                     cmocka_unit_test(workers_without_rows)};
  return cmocka_run_group_tests(tests, open_engines, close_engines);
}

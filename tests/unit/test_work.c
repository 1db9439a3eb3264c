/* SPDX-License-Identifier: Apache-2.0 */
/* What a cluster costs grows as its tasks do, not with their square: counted in basic blocks of base, ir, passes and
 * planner, which are compiled so that each calls the function below (see meson.build). No clock, and no counter of the
 * processor: a loop over all tasks inside another one shows, whatever memory it takes. */
#include "frontend/frontend.h"
#include "ir/plan/report.h"
#include "passes/pass.h"
#include "planner/planner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Four times the tasks may take so many times the work: what is sorted takes a little more than four. */
#define TIMES 4
#define MOST  4.6

static uint64_t blocks;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) { blocks++; }

enum part { PASSES, PLAN, VERIFY, GRAPH_TEXT, PLAN_TEXT, TRAFFIC, MEMORY, PARTS };
static const char *const parts[PARTS] = {"passes",      "plan",    "plan verified", "graph's text",
                                         "plan's text", "traffic", "memory"};

struct work {
  double blocks[PARTS];
};

static const char text[] = "model m() {\n"
                           " input x : f32[B, 4]\n"
                           " var v : f32[4, 8] = ones()\n"
                           " var w : f32[8, 3] = ones()\n"
                           " var b : f32[3] = zeros()\n"
                           " y = tanh(matmul(x, v))\n"
                           " metric most = mean(max(y, axis = 1))\n"
                           " train mean(sum(matmul(y, w) + b, axis = 1)) with adam()\n"
                           "}\n";

static uint64_t since(uint64_t *start) {
  uint64_t before = *start;
  *start = blocks;
  return blocks - before;
}

/* Of all its tasks, or of the one that plans for itself. */
static struct work plan_cluster(const char *strategy, const char *sums, int tasks, const char *task) {
  struct arena *a = arena_create();
  struct work w = {{0}};
  struct diags d;
  diags_init(&d, a);
  struct model *m = frontend_compile(a, source_make(a, "cluster.dsl", text, strlen(text)), NULL, &d);
  if (!m) fail_msg("%s", diags_text(&d, false));
  struct graph *g = m->train;
  bool served = strcmp(strategy, "parameter_server") == 0;
  g->config.batch = 2 * tasks;
  g->config.strategy = strategy;
  g->config.task = task;
  if (sums) g->config.cross_device = sums;
  const char *cluster = arena_printf(a, served ? "worker=%d;ps=2" : "worker=%d", tasks);
  uint64_t start = blocks;
  assert_true(cluster_parse(a, cluster, NULL, &g->config.target, &d));
  g = pipeline_run(a, g, NULL, NULL, &(struct pipeline_options){.verify_each = true}, &d);
  w.blocks[PASSES] = (double)since(&start);
  struct plan *p = g ? plan_build_processes(a, g, &d) : NULL;
  if (!p) fail_msg("%s", diags_text(&d, false));
  w.blocks[PLAN] = (double)since(&start);
  assert_true(plan_verify(p, &d));
  w.blocks[VERIFY] = (double)since(&start);
  struct str s = str_make(a);
  graph_print(&s, g);
  w.blocks[GRAPH_TEXT] = (double)since(&start);
  plan_print(&s, p);
  w.blocks[PLAN_TEXT] = (double)since(&start);
  if (!task) { /* traffic and memory are of all */
    plan_print_traffic(&s, p);
    w.blocks[TRAFFIC] = (double)since(&start);
    plan_print_memory(&s, p);
    w.blocks[MEMORY] = (double)since(&start);
  }
  arena_destroy(a);
  return w;
}

static bool longer;

static const struct tried {
  const char *strategy, *sums, *task; /* no task: one process plans for all */
  int tasks;
  bool longer; /* takes as long as most others together */
} all[] = {
    {"multi_worker_mirrored", NULL, NULL, 256, true},
    {"parameter_server", NULL, NULL, 256, false},
    {"central_storage", NULL, NULL, 256, true},
    {"multi_worker_mirrored", NULL, "worker:0", 256, false},
    {"multi_worker_mirrored", "scatter", "worker:5", 256, false},
    {"parameter_server", NULL, "worker:0", 256, false},
    {"parameter_server", NULL, "ps:0", 256, false},
};

static void tasks_are_linear(void **state) {
  (void)state;
  int worse = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const struct tried *t = &all[i];
    if (t->longer && !longer) continue;
    int tasks = longer || t->task ? t->tasks : t->tasks / 2;
    struct work few = plan_cluster(t->strategy, t->sums, tasks, t->task),
                many = plan_cluster(t->strategy, t->sums, TIMES * tasks, t->task);
    print_message("%s, %s, %s of %d tasks:", t->strategy, t->sums ? t->sums : "as usual",
                  t->task ? t->task : "all", TIMES * tasks);
    for (enum part p = PASSES; p < PARTS; p++) {
      if (few.blocks[p] == 0) continue;
      double times = many.blocks[p] / few.blocks[p];
      print_message(" %s %.0f blocks a task, %.2f times;", parts[p], many.blocks[p] / TIMES / tasks, times);
      worse += !(times <= MOST);
    }
    print_message("\n");
    assert_true(few.blocks[PASSES] > 1000); /* they are counted */
  }
  assert_int_equal(worse, 0);
}

/* test_work [longer] */
int main(int argc, char **argv) {
  longer = argc > 1 && strcmp(argv[1], "longer") == 0;
  const struct CMUnitTest tests[] = {cmocka_unit_test(tasks_are_linear)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

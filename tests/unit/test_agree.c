/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement over the messages of parts: of two tasks that have planned for themselves, one sends what the other one
 * does not receive, or the other way round. Both are told which message that is. */
#include "session/agree.h"

#include "ir/ops/op.h"
#include "ir/plan/plan.h"
#include "passes/pass.h"
#include "planner/planner.h"
#include "session/state/settlement.h"
#include "tests/support/processes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char text[] = "graph two {\n"
                           "  stage source\n"
                           "  x = input : f32[B,8]\n"
                           "  w = variable : f32[8]\n"
                           "  w.grad = reduce_sum x {axes=[0]} : f32[8]\n"
                           "  w.next = sub w, w.grad : f32[8]\n"
                           "  w.update = assign w, w.next\n"
                           "  update w.update\n"
                           "}\n";

static const struct fault {
  const char *what;
  int process;       /* whose plan has it; -1: none has */
  bool sends;        /* it is one that it sends */
  bool gone;         /* it knows nothing of it; else it is larger for it */
  const char *error; /* of process 0 */
} faults[] = {
    {"none", -1, false, false, ""},
    {"one that is not received", 0, false, true,
     "error: the tasks do not agree: nobody expects message 0 from /job:worker/task:1/cpu:0 to "
     "/job:worker/task:0/cpu:0, of 32 bytes, in the order 2 0 1, tower_1/w.grad.to_0"},
    {"one that is not sent", 0, true, true,
     "error: the tasks do not agree: nobody sends message 0 from /job:worker/task:0/cpu:0 to "
     "/job:worker/task:1/cpu:0, of 32 bytes, in the order 2 64 0, gradient_aggregating/w"},
    {"one that the other does not receive", 1, false, true,
     "error: the tasks do not agree: nobody expects message 0 from /job:worker/task:0/cpu:0 to "
     "/job:worker/task:1/cpu:0, of 32 bytes, in the order 2 64 0, gradient_aggregating/w.to_1"},
    {"one that is longer where it is sent", 1, true, false,
     "error: the tasks do not agree: nobody sends message 0 from /job:worker/task:1/cpu:0 to "
     "/job:worker/task:0/cpu:0, of 32 bytes, in the order 2 0 1, gradient_aggregating/w.tower_1"},
};

struct work {
  const struct fault *fault;
  struct arena *arenas[2];
  enum dgc_status status[2];
  const char *said[2];
};

static struct graph *read_source(struct arena *a, struct diags *d) {
  struct graph *g = graph_parse(a, source_make(a, "two.dg", text, sizeof text - 1), d);
  if (!g) return NULL;
  g->config.batch = 4;
  g->config.strategy = "multi_worker_mirrored";
  return cluster_parse(a, "worker=2", NULL, &g->config.target, d) ? g : NULL;
}

static void plant(struct plan *p, const struct fault *f) {
  int at = 0;
  while (at < p->nmessages && (plan_process(p, p->messages[at].from) == f->process) != f->sends) at++;
  if (at == p->nmessages) return;
  if (!f->gone) {
    p->messages[at].bytes += 4;
    return;
  }
  p->nmessages--;
  memmove(&p->messages[at], &p->messages[at + 1], (size_t)(p->nmessages - at) * sizeof *p->messages);
}

static void one_process(void *arg, const struct transport *t) {
  struct work *w = arg;
  struct arena *a = w->arenas[t->rank];
  struct settlement settlement = {0};
  struct dgc_session s = {.arena = a, .call = a, .settlement = &settlement, .transport = t};
  const struct pipeline_options o = {.verify_each = true};
  diags_init(&s.diags, a);
  w->status[t->rank] = DGC_RUNTIME;
  struct graph *g = read_source(a, &s.diags), *part = read_source(a, &s.diags);
  if (!g || !part) return;
  settlement.target = g->config.target;
  part->config.task = arena_printf(a, "worker:%d", t->rank);
  part = pipeline_run(a, part, NULL, NULL, &o, &s.diags);
  struct plan *p = part ? plan_build_processes(a, part, &s.diags) : NULL;
  if (p && w->fault->process == t->rank) plant(p, w->fault);
  if (p) w->status[t->rank] = agree_on_plan(&s, g, p);
  w->said[t->rank] = diags_text(&s.diags, false);
}

static void a_message_with_one_end_is_named(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    const struct fault *f = &faults[i];
    struct arena *a = arena_create();
    struct work w = {.fault = f, .arenas = {arena_create(), arena_create()}, .said = {"", ""}};
    const char *wrong = processes_run(a, 2, DELIVER_AT_ONCE, i, one_process, &w);
    if (wrong) fail_msg("%s: %s", f->what, wrong);
    enum dgc_status want = f->process < 0 ? DGC_OK : DGC_USAGE;
    if (w.status[0] != want || w.status[1] != want)
      fail_msg("%s: %d and %d: %s%s", f->what, (int)w.status[0], (int)w.status[1], w.said[0], w.said[1]);
    if (strncmp(w.said[0], f->error, strlen(f->error)) != 0 || (!*f->error && *w.said[0]) || *w.said[1])
      fail_msg("%s: process 0 says\n%s\nand not\n%s\nand process 1\n%s", f->what, w.said[0], f->error,
               w.said[1]);
    for (int k = 0; k < 2; k++) arena_destroy(w.arenas[k]);
    arena_destroy(a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_message_with_one_end_is_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a model costs from its text to the plan grows as the model does, in every direction in which it can: measured
 * in bytes that arenas hand out, four times the size against once. What is quadratic shows as up to 16 times. */
#include "base/work.h"
#include "frontend/frontend.h"
#include "ir/strategies.h"
#include "passes/pass.h"
#include "planner/planner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "model m() {\n input x : f32[B, 4]\n var w : f32[4] = zeros()\n"
#define TAIL " train mean(x * w) with sgd(rate = 0.1)\n}\n"

enum { SMALL = 160, TIMES = 4, HEAVY = 7 };
static bool longer;

static const char *repeat(struct arena *a, int n, const char *between, const char *fmt) {
  struct str s = str_make(a);
  for (int i = 0; i < n; i++) {
    if (i) str_put(&s, between);
    for (const char *p = fmt; *p; p++) {
      if (*p == '#')
        str_printf(&s, "%d", i);
      else if (*p == '^')
        str_printf(&s, "%d", i + 1);
      else
        str_putc(&s, *p);
    }
  }
  return s.data;
}

/* In `each`, # is the number of the repetition and ^ the next one; `join` stands between. $ in `after` is how many.
 * The last HEAVY of them take as long as all others. */
static const struct dimension {
  const char *name, *before, *each, *join, *after;
} dimensions[] = {
    {"depth", HEAD " h0 = x * w\n", " h^ = tanh(h#)\n", "", " train mean(h$) with sgd(rate = 0.1)\n}\n"},
    {"metrics at depth", HEAD " h0 = w * 2\n", " h^ = tanh(h#)\n metric m# = mean(x) * sum(h^)\n", "", TAIL},
    {"variables", HEAD, " var w# : f32[4] = zeros()\n y# = x * w#\n", "",
     " train mean(y0) with sgd(rate = 0.1)\n}\n"},
    {"one metric", HEAD " m0 = mean(x)\n", " m^ = m# + mean(w)\n", "", " metric m = m$\n" TAIL},
    {"predictions", HEAD, " predict p# = x * ^ * w\n", "", TAIL},
    {"inputs", "model m() {\n input x : f32[B, 4]\n", " input x# : f32[B]\n predict p# = x# + x[:, 0]\n", "",
     "}\n"},
    {"data", "model m() {\n input x : f32[B, 4]\n",
     " input x# : f32[B]\n predict p# = x#\n data train { x# = \"a\" }\n", "", "}\n"},
    {"chosen variables", "", "layer l#(x) {\n var v : f32[4] = ones()\n return x * v\n}\n", "",
     HEAD " y = l0(x)\n train mean(y * w) with sgd(rate = 0.1) over [w, \"y\"]\n}\n"},
    {"a list", HEAD " l = [", "^", ", ", "]\n y = x * l[0]\n" TAIL},
    {"a loop", HEAD " h = x\n for i in [", "#", ", ",
     "] { h = tanh(h) }\n train mean(h * w) with sgd(rate = 0.1)\n}\n"},
    {"conditions", HEAD " h = x\n", " if # == 1 { h = h * 2 } else { h = h * ^ }\n", "",
     " predict p = h\n" TAIL},
    {"devices asked for", HEAD, " y# = x * ^ on \"/cpu:1\"\n predict p# = y#\n", "", TAIL},
    {"functions", "", "function fun#(x) { return x * ^ }\n", "", HEAD " predict p = fun0(x)\n" TAIL},
    {"a long sum", HEAD " y = x", " + x * ^", "", "\n train mean(y * w) with adam()\n}\n"},
    {"metrics", HEAD, " metric m# = mean(x * ^)\n", "", TAIL},
    {"operands", HEAD " y = concat([", "x * ^", ", ",
     "], axis = 1)\n z = sum(y, axis = 1)\n train mean(x * w) + mean(z) with sgd(rate = 0.1)\n}\n"},
    {"assignments at depth", HEAD " h0 = x * w\n",
     " h^ = tanh(h#)\n state s# : f32 = 0\n s# <- mean(h^)\n state t# : f32 = 0 aggregation(sum)\n t# += "
     "mean(h^)\n",
     "", " train mean(h$) with sgd(rate = 0.1)\n}\n"},
    {"operands of equal names", HEAD " y = sum(concat([", "tanh(x * ^)", ", ",
     "], axis = 1) * concat([x, x], axis = 1)[:, 0:1], axis = 1)\n train mean(x * w) + mean(y) with sgd(rate "
     "= 0.1)\n}\n"},
    {"losses", HEAD, " var w# : f32[4] = zeros()\n train a# = mean(x * w#) with sgd(rate = 0.1)\n", "", TAIL},
    {"calls", "layer l(x) {\n var k : f32[4] = zeros()\n return x * k\n}\n" HEAD " h0 = x\n", " h^ = l(h#)\n",
     "", " train mean(h$ * w) with sgd(rate = 0.1)\n}\n"},
};

/* Bytes by part of the compiler. */
enum part { FRONTEND, PASSES, PLAN, PARTS };
static const char *const parts[PARTS] = {"frontend", "passes", "plan"};

struct cost {
  double bytes[PARTS];
};

static struct cost compile(struct arena *a, const char *name, const char *text) {
  struct diags d;
  struct cost c = {{0}};
  diags_init(&d, a);
  size_t start = work_bytes();
  struct model *m = frontend_compile(a, source_make(a, "growth.dsl", text, strlen(text)), NULL, &d);
  c.bytes[FRONTEND] = (double)(work_bytes() - start);
  if (!m) fail_msg("%s: %s", name, diags_text(&d, false));
  struct graph *graphs[] = {m->init, m->train, m->eval, m->predict};
  for (int i = 0; i < 4; i++) {
    if (!graphs[i]) continue;
    graphs[i]->config.batch = 8;
    assert_true(target_parse(a, "cpu:0-1", &graphs[i]->config.target, &d, LOC_NONE));
    start = work_bytes();
    struct graph *g =
        pipeline_run(a, graphs[i], NULL, NULL, &(struct pipeline_options){.verify_each = true}, &d);
    c.bytes[PASSES] += (double)(work_bytes() - start);
    start = work_bytes();
    if (!g || !plan_build(a, g, &d)) fail_msg("%s: %s", name, diags_text(&d, false));
    c.bytes[PLAN] += (double)(work_bytes() - start);
  }
  return c;
}

static const char *text_of(struct arena *a, const struct dimension *m, int n) {
  struct str s = str_make(a);
  str_put(&s, m->before);
  str_put(&s, repeat(a, n, m->join, m->each));
  for (const char *p = m->after; *p; p++)
    if (*p == '$')
      str_printf(&s, "%d", n);
    else
      str_putc(&s, *p);
  return s.data;
}

static struct cost cost(const struct dimension *m, int n) {
  struct arena *a = arena_create();
  struct cost c = compile(a, m->name, text_of(a, m, n));
  arena_destroy(a);
  return c;
}

/* What one size costs more than another, against what that costs more than one piece; 1 where there is nothing to
 * see. */
static double growth(const struct cost *one, const struct cost *small, const struct cost *large,
                     enum part p) {
  double first = small->bytes[p] - one->bytes[p], all = large->bytes[p] - one->bytes[p];
  return first < 64 * SMALL ? 1 : all / first;
}

static void every_dimension_is_linear(void **state) {
  (void)state;
  int worse = 0;
  for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions - (longer ? 0 : HEAVY); i++) {
    const struct dimension *m = &dimensions[i];
    struct cost one = cost(m, 1), small = cost(m, SMALL), large = cost(m, TIMES * SMALL);
    struct str s = str_make(arena_create());
    for (enum part p = FRONTEND; p < PARTS; p++) {
      double times = growth(&one, &small, &large, p);
      str_printf(&s, "  %s %.0f, %.2f", parts[p], large.bytes[p] / (TIMES * SMALL), times);
      worse += times > 1.25 * TIMES;
    }
    print_message("%-24s%s\n", m->name, s.data);
    arena_destroy(s.arena);
  }
  assert_int_equal(worse, 0);
}

/* A value that is made of one value twice, thirty times over, is thirty values. */
static void sharing_costs_nothing(void **state) {
  static const struct dimension doubled[] = {
      {"a metric", HEAD " m0 = mean(x)\n", " m^ = m# + m#\n", "", " metric m = m$\n" TAIL},
      {"a loss", HEAD " a0 = mean(x * w)\n", " a^ = a# + a# * 0.5\n", "",
       " train a$ with sgd(rate = 0.1)\n}\n"},
      {"a condition", HEAD " a0 = x > 0.0\n", " a^ = (a# and a#) or a#\n", "",
       " predict p = select(a$, x, -x)\n" TAIL},
  };
  (void)state;
  for (size_t i = 0; i < sizeof doubled / sizeof *doubled; i++) {
    struct cost ten = cost(&doubled[i], 10), thirty = cost(&doubled[i], 30);
    for (enum part p = FRONTEND; p < PARTS; p++) assert_true(thirty.bytes[p] < 4 * ten.bytes[p]);
  }
}

/* What planning the training for processes costs: bytes, and those for each of its steps and messages. */
struct cluster_cost {
  double bytes, each;
  int messages;
};

static struct cluster_cost plan_cluster(const char *strategy, int tasks, int variables) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  const char *text = arena_printf(a, HEAD "%s train mean(%s) with sgd(rate = 0.1)\n}\n",
                                  repeat(a, variables, "", " var w# : f32[4] = zeros()\n y# = x * w#\n"),
                                  repeat(a, variables, " + ", "y#"));
  struct model *m = frontend_compile(a, source_make(a, "cluster.dsl", text, strlen(text)), NULL, &d);
  if (!m) fail_msg("%s", diags_text(&d, false));
  struct graph *g = m->train;
  bool served = strategy_find(strategy)->storage == STORAGE_SERVERS;
  g->config.batch = g->config.towers = tasks;
  g->config.strategy = strategy;
  const char *cluster = arena_printf(a, served ? "worker=%d;ps=2" : "worker=%d", tasks);
  assert_true(cluster_parse(a, cluster, NULL, &g->config.target, &d));
  g = pipeline_run(a, g, NULL, NULL, &(struct pipeline_options){0}, &d);
  size_t start = work_bytes();
  struct plan *p = g ? plan_build_processes(a, g, &d) : NULL;
  if (!p) fail_msg("%s", diags_text(&d, false));
  struct cluster_cost c = {.bytes = (double)(work_bytes() - start), .messages = p->nmessages};
  double steps = p->nmessages;
  for (int i = 0; i < p->ndevices; i++) steps += p->devices[i].nsteps;
  c.each = c.bytes / steps;
  arena_destroy(a);
  return c;
}

/* With 256 tasks, or 128, a step costs as much as with 16; with 64, whatever the number of variables. */
static void tasks_are_linear(void **state) {
  static const char *const tried[] = {"multi_worker_mirrored", "parameter_server", "central_storage"};
  (void)state;
  int worse = 0;
  for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
    const char *s = tried[i];
    struct cluster_cost few = plan_cluster(s, 16, 16), many = plan_cluster(s, longer ? 256 : 128, 16);
    struct cluster_cost small = plan_cluster(s, 64, 16), large = plan_cluster(s, 64, 64);
    print_message("%-24s%6d and%6d messages, %5.0f and%5.0f bytes a step", s, few.messages, many.messages,
                  few.each, many.each);
    print_message("; %6d and%6d messages, %5.0f and%5.0f\n", small.messages, large.messages, small.each,
                  large.each);
    worse += many.each > 1.1 * few.each || large.each > 1.25 * small.each;
  }
  assert_int_equal(worse, 0);
}

/* What one task of a cluster costs that plans for itself: bytes of the passes and the plan, and what the plan has. */
struct part_cost {
  double bytes;
  int nodes, steps, messages, buffers;
};

static struct part_cost plan_part(int tasks, int task) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  const char *text = arena_printf(a, HEAD "%s train mean(%s) with adam()\n}\n",
                                  repeat(a, 8, "", " var w# : f32[4] = zeros()\n y# = tanh(x * w#)\n"),
                                  repeat(a, 8, " + ", "y#"));
  struct model *m = frontend_compile(a, source_make(a, "part.dsl", text, strlen(text)), NULL, &d);
  if (!m) fail_msg("%s", diags_text(&d, false));
  struct graph *g = m->train;
  g->config.batch = tasks;
  g->config.task = arena_printf(a, "worker:%d", task);
  size_t start = work_bytes();
  assert_true(cluster_parse(a, arena_printf(a, "worker=%d", tasks), NULL, &g->config.target, &d));
  g = pipeline_run(a, g, NULL, NULL, &(struct pipeline_options){0}, &d);
  struct plan *p = g ? plan_build_processes(a, g, &d) : NULL;
  if (!p || !p->part || !plan_verify(p, &d)) fail_msg("%s", diags_text(&d, false));
  struct part_cost c = {(double)(work_bytes() - start), (int)g->count, p->devices[task].nsteps, p->nmessages,
                        p->nbuffers};
  arena_destroy(a);
  return c;
}

/* A task that sums nothing does the same among 32 tasks and among 4096; what it costs more is the list of them. The one
 * that sums costs as much more as it has more messages. */
static void parts_are_small(void **state) {
  enum { FEW = 32, MORE = 512, MANY = 4096, EACH = 12000 };
  (void)state;
  struct part_cost few = plan_part(FEW, FEW / 2), many = plan_part(MANY, FEW / 2);
  double each = (many.bytes - few.bytes) / (MANY - FEW);
  print_message("one of %d tasks: %d nodes, %d steps, %d messages, %d buffers, %.0f bytes\n", FEW, few.nodes,
                few.steps, few.messages, few.buffers, few.bytes);
  print_message("one of %d tasks: %d nodes, %d steps, %d messages, %d buffers; %.0f bytes for each task\n",
                MANY, many.nodes, many.steps, many.messages, many.buffers, each);
  assert_int_equal(few.nodes, many.nodes);
  assert_int_equal(few.steps, many.steps);
  assert_int_equal(few.messages, many.messages);
  assert_int_equal(few.buffers, many.buffers);
  assert_true(each < EACH);
  struct part_cost first = plan_part(FEW, 0), more = plan_part(MORE, 0), most = plan_part(4 * MORE, 0);
  double small = (more.bytes - first.bytes) / (more.messages - first.messages);
  double large = (most.bytes - more.bytes) / (most.messages - more.messages);
  print_message("the first: %d, %d and %d messages, %.0f and %.0f bytes a message\n", first.messages,
                more.messages, most.messages, small, large);
  assert_true(large < 1.1 * small);
}

/* test_growth [longer] */
int main(int argc, char **argv) {
  longer = argc > 1 && strcmp(argv[1], "longer") == 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_dimension_is_linear),
      cmocka_unit_test(sharing_costs_nothing),
      cmocka_unit_test(tasks_are_linear),
      cmocka_unit_test(parts_are_small),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

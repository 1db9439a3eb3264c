/* SPDX-License-Identifier: Apache-2.0 */
/* What each task of a cluster plans for itself: together the parts are the graph of all tasks, node by node; what one
 * sends another receives; each part has an order that keeps nobody waiting for ever, and faults planted in it are
 * found. */
#include "ir/ops/op.h"
#include "ir/ops/op_id.h"
#include "ir/strategies.h"
#include "passes/pass.h"
#include "planner/planner.h"
#include "tests/support/fixture.h"
#include "tests/towers/matrix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_TASKS = 8 };

static const struct {
  int tasks, devices, towers;
  const char *cross_device;
  const char *hosts;    /* of the tasks, those of servers the last; NULL: none are named */
  const char *strategy; /* NULL: multi_worker_mirrored */
  int servers;
} clusters[] = {{2, 1, 2, NULL, NULL, NULL, 0},
                {3, 1, 3, NULL, NULL, NULL, 0},
                {4, 1, 4, NULL, "aabb", NULL, 0},
                {5, 1, 5, NULL, NULL, NULL, 0},
                {3, 2, 7, NULL, "abb", NULL, 0},
                {2, 3, 5, NULL, NULL, NULL, 0},
                {8, 1, 8, NULL, NULL, NULL, 0},
                {3, 1, 8, NULL, NULL, NULL, 0},
                {4, 2, 8, NULL, "aabb", NULL, 0},
                {8, 1, 8, NULL, "abcabcab", NULL, 0},
                {6, 1, 13, NULL, "aabbcc", NULL, 0},
                {2, 1, 2, "scatter", NULL, NULL, 0},
                {3, 1, 3, "scatter", NULL, NULL, 0},
                {3, 2, 7, "scatter", "abb", NULL, 0},
                {2, 3, 5, "scatter", NULL, NULL, 0},
                {8, 1, 8, "scatter", NULL, NULL, 0},
                {3, 1, 8, "scatter", NULL, NULL, 0},
                {4, 2, 8, "scatter", "aabb", NULL, 0},
                {8, 1, 8, "scatter", "aaaabbbb", NULL, 0},
                {8, 1, 8, "scatter", "abcabcab", NULL, 0},
                {2, 1, 2, "ring", NULL, NULL, 0},
                {3, 1, 3, "ring", NULL, NULL, 0},
                {3, 2, 7, "ring", NULL, NULL, 0},
                {2, 3, 5, "ring", "ab", NULL, 0},
                {8, 1, 8, "ring", NULL, NULL, 0},
                {3, 1, 8, "ring", NULL, NULL, 0},
                {4, 2, 8, "ring", NULL, NULL, 0},
                {2, 1, 2, "hierarchical_copy", NULL, NULL, 0},
                {3, 1, 3, "hierarchical_copy", NULL, NULL, 0},
                {5, 1, 5, "hierarchical_copy", NULL, NULL, 0},
                {2, 2, 4, "hierarchical_copy", NULL, NULL, 0},
                {8, 1, 8, "hierarchical_copy", NULL, NULL, 0},
                {4, 2, 8, "hierarchical_copy", NULL, NULL, 0},
                {2, 1, 2, NULL, NULL, "central_storage", 0},
                {3, 2, 7, NULL, NULL, "central_storage", 0},
                {4, 2, 8, NULL, "aabb", "central_storage", 0},
                {8, 1, 8, NULL, "abcabcab", "replicate", 0},
                {3, 1, 3, NULL, NULL, "round_robin", 0},
                {4, 2, 8, NULL, "abba", "round_robin", 0},
                {2, 1, 2, NULL, NULL, "parameter_server", 1},
                {3, 2, 7, NULL, NULL, "parameter_server", 2},
                {4, 1, 8, NULL, "aabbab", "parameter_server", 2},
                {5, 1, 5, NULL, "aabbcabc", "parameter_server", 3}};

struct parts {
  struct matrix_subject *s;
  const struct graph *source;
  struct graph *whole;
  int tasks;
  struct graph *placed[MOST_TASKS];
  struct plan *plans[MOST_TASKS];
  const char *what;
};

static void write_job(struct str *jobs, const char *name, int cluster, int first, int tasks) {
  const char *hosts = clusters[cluster].hosts;
  str_printf(jobs, "%s=", name);
  for (int i = first; hosts && i < first + tasks; i++)
    str_printf(jobs, "%s%c:%d", i > first ? "," : "", hosts[i], i + 1);
  if (!hosts) str_printf(jobs, "%d", tasks);
}

static struct graph *compile(struct parts *p, int cluster, const char *task, const char *last) {
  struct matrix_subject *s = p->s;
  const struct pipeline_options o = {.verify_each = true};
  struct graph *g = graph_copy(s->arena, p->source);
  g->diags = &s->diags;
  g->config.batch = s->rows;
  g->config.towers = clusters[cluster].towers;
  g->config.strategy = clusters[cluster].strategy ? clusters[cluster].strategy : "multi_worker_mirrored";
  g->config.uneven = (strategy_find(g->config.strategy)->settings & TAKES_UNEVEN) != 0;
  g->config.min_part_bytes = clusters[cluster].servers > 1 ? 64 : 0;
  g->config.cross_device = clusters[cluster].cross_device;
  g->config.task = task;
  const char *devices = arena_printf(s->arena, "cpu:0-%d", clusters[cluster].devices - 1);
  struct str jobs = str_make(s->arena);
  write_job(&jobs, "worker", cluster, 0, clusters[cluster].tasks);
  if (clusters[cluster].servers) {
    str_printf(&jobs, ";");
    write_job(&jobs, "ps", cluster, clusters[cluster].tasks, clusters[cluster].servers);
  }
  g->config.cluster = jobs.data;
  if (!cluster_parse(s->arena, jobs.data, devices, &g->config.target, &s->diags)) fail();
  g = pipeline_run(s->arena, g, NULL, last, &o, &s->diags);
  if (!g) fail_msg("%s: %s", p->what, diags_text(&s->diags, false));
  return g;
}

static const char *task_name(struct arena *a, int cluster, int i) {
  int workers = clusters[cluster].tasks;
  return i < workers ? arena_printf(a, "worker:%d", i) : arena_printf(a, "ps:%d", i - workers);
}

/* Rows of a table that another task holds are looked up there: then all tasks are planned in each. */
static bool looks_up(const struct graph *g) {
  for (uint32_t i = 0; i < g->count; i++)
    if (g->nodes[i]->op == OP_gather && g->nodes[i]->inputs[0]->op == OP_variable) return true;
  return false;
}

static void make_parts(struct parts *p, int cluster) {
  p->tasks = clusters[cluster].tasks + clusters[cluster].servers;
  p->whole = compile(p, cluster, NULL, "copies");
  for (int i = 0; i < p->tasks; i++) {
    const char *task = task_name(p->s->arena, cluster, i);
    p->placed[i] = compile(p, cluster, task, "copies");
    p->plans[i] = plan_build_processes(p->s->arena, compile(p, cluster, task, NULL), &p->s->diags);
    if (!p->plans[i] || !p->plans[i]->part || !plan_verify(p->plans[i], &p->s->diags))
      fail_msg("%s, task %d: %s", p->what, i, diags_text(&p->s->diags, false));
  }
}

/* What computes: not what brings values from one device to another, nor what is given. */
static bool is_compared(const struct node *n) {
  return n->op != OP_send && n->op != OP_remote && n->op != OP_copy && n->op != OP_input && n->op != OP_split;
}

static bool same_attrs(const struct node *a, const struct node *b) {
  if (a->nattrs != b->nattrs) return false;
  for (int i = 0; i < a->nattrs; i++)
    if (!attr_equal(&a->attrs[i], &b->attrs[i])) return false;
  return true;
}

/* In both graphs a node of one name is the same but for where its operands come from. */
static void compare_nodes(const struct parts *p, const struct graph *a, const struct graph *b, int process,
                          const int *of) {
  const uint8_t *live = graph_live(p->s->arena, a);
  for (uint32_t i = 0; i < a->count; i++) {
    const struct node *n = a->nodes[i];
    if (!live[i] || !is_compared(n) || of[n->device] != process) continue;
    const struct node *m = graph_find(b, n->name);
    if (!m) fail_msg("%s, task %d: there is no %s", p->what, process, n->name);
    if (m->op != n->op || !type_equal(&m->type, &n->type) || m->ninputs != n->ninputs || m->dist != n->dist ||
        m->tower != n->tower || m->replica != n->replica || m->device != n->device || !same_attrs(m, n))
      fail_msg("%s, task %d: %s is another", p->what, process, n->name);
  }
}

static void parts_are_the_whole(const struct parts *p) {
  int of[64];
  target_processes(&p->whole->config.target, of);
  for (int i = 0; i < p->tasks; i++) {
    compare_nodes(p, p->placed[i], p->whole, i, of);
    compare_nodes(p, p->whole, p->placed[i], i, of);
  }
}

static bool same_message(const struct message *a, const struct message *b) {
  return a->tag == b->tag && a->from == b->from && a->to == b->to && a->bytes == b->bytes &&
         message_compare(a->node, b->node) == 0;
}

/* How many; each has its other end in the part of another task. */
static int messages_meet(const struct parts *p) {
  int count = 0;
  for (int i = 0; i < p->tasks; i++)
    for (int k = 0; k < p->plans[i]->nmessages; k++) {
      const struct message *m = &p->plans[i]->messages[k];
      const int *of = p->plans[i]->processes;
      const struct plan *other = p->plans[of[m->from] == i ? of[m->to] : of[m->from]];
      int ends = 0;
      for (int l = 0; l < other->nmessages; l++) ends += same_message(m, &other->messages[l]);
      if (ends != 1) fail_msg("%s, task %d: %s has %d other ends", p->what, i, m->node->name, ends);
      count++;
    }
  return count / 2;
}

/* ---- faults ---- */

static void must_be_found(const struct parts *p, const struct plan *plan, const char *what, int step) {
  struct diags d;
  diags_init(&d, p->s->arena);
  if (plan_verify(plan, &d)) fail_msg("%s, task %d, step %d: %s", p->what, plan->part - 1, step, what);
}

/* The device's steps once more, in a plan that is otherwise the same. */
static struct device_plan *again(struct arena *a, struct plan *copy, const struct plan *plan, int device) {
  *copy = *plan;
  copy->devices = arena_copy(a, plan->devices, (size_t)plan->ndevices * sizeof *plan->devices);
  struct device_plan *dp = &copy->devices[device];
  dp->steps = arena_copy(a, dp->steps, (size_t)dp->nsteps * sizeof *dp->steps);
  return dp;
}

static void swap(struct step *steps, int i, int k) {
  struct step saved = steps[i];
  steps[i] = steps[k];
  steps[k] = saved;
}

/* On one device: a receive before the one that comes first; behind a receive a send that is smaller; nothing that waits
 * until a message is gone. How many. */
static int plant_faults(const struct parts *p, const struct plan *plan, int device) {
  struct arena *a = p->s->arena;
  const struct step *steps = plan->devices[device].steps;
  int planted = 0, last[STEP_RECEIVE + 1];
  for (int kind = 0; kind <= STEP_RECEIVE; kind++) last[kind] = -1;
  for (int k = 0; k < plan->devices[device].nsteps; k++) {
    struct plan copy;
    int send = last[STEP_SEND], receive = last[STEP_RECEIVE];
    if (steps[k].kind == STEP_SENT) {
      struct device_plan *dp = again(a, &copy, plan, device);
      memmove(&dp->steps[k], &dp->steps[k + 1], (size_t)(--dp->nsteps - k) * sizeof *dp->steps);
      must_be_found(p, &copy, "nothing waits until it is gone", k);
      planted++;
    }
    if (steps[k].kind == STEP_RECEIVE && receive >= 0) {
      swap(again(a, &copy, plan, device)->steps, receive, k);
      must_be_found(p, &copy, "it is received before a smaller one", k);
      planted++;
    }
    if (steps[k].kind == STEP_RECEIVE && send > receive &&
        steps[send].message->number < steps[k].message->number) {
      swap(again(a, &copy, plan, device)->steps, send, k);
      must_be_found(p, &copy, "it is received before a smaller one is sent", k);
      planted++;
    }
    last[steps[k].kind] = k;
  }
  return planted;
}

static int messages, faults;

static void try_source(struct matrix_subject *s, const struct graph *source, int cluster) {
  if (!source || (clusters[cluster].strategy && looks_up(source))) return;
  struct parts p = {.s = s, .source = source};
  p.what = arena_printf(s->arena, "%s, %d+%d tasks of %d devices, %d towers, %s, hosts %s", source->name,
                        clusters[cluster].tasks, clusters[cluster].servers, clusters[cluster].devices,
                        clusters[cluster].towers,
                        clusters[cluster].strategy       ? clusters[cluster].strategy
                        : clusters[cluster].cross_device ? clusters[cluster].cross_device
                                                         : "reduce_to_one",
                        clusters[cluster].hosts ? clusters[cluster].hosts : "not named");
  make_parts(&p, cluster);
  parts_are_the_whole(&p);
  messages += messages_meet(&p);
  for (int i = 0; i < p.tasks; i++)
    for (int d = 0; d < p.plans[i]->ndevices; d++)
      if (p.plans[i]->processes[d] == i) faults += plant_faults(&p, p.plans[i], d);
}

static void all_samples(void **state) {
  (void)state;
  struct engine e;
  if (!engine_open(&e, "interp", 1)) fail();
  for (int sample = 0; sample < SAMPLES; sample++)
    for (int cluster = 0; cluster < (int)(sizeof clusters / sizeof *clusters); cluster++) {
      if ((sample + cluster) % (int)number_from("TEST_SHARE", 1)) continue;
      struct matrix_subject s;
      matrix_begin(&s, &matrix_samples[sample], &cpu_layouts[0], 5, 1, &e);
      const struct model *m = s.model;
      const struct graph *const sources[] = {m->init, m->train, m->eval, m->predict};
      for (int i = 0; i < 4; i++) try_source(&s, sources[i], cluster);
      matrix_end(&s);
    }
  engine_close(&e);
  print_message("%d messages, %d faults\n", messages, faults);
  assert_true(messages > 100 && faults > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_samples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

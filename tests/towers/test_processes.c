/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of a cluster as processes, here threads of the test with mailboxes between them: samples made small, on every
 * strategy that has clusters, end with the variables and outputs of one process, to the bit, whatever becomes of
 * messages that MPI allows. Each runs several plans in one session: of another batch, whose larger arenas take the
 * place of those that messages went to, and the evaluation; some with replicas of variables that had none before. */
#include "passes/pass.h"
#include "planner/planner.h"
#include "tests/support/fixture.h"
#include "tests/support/processes.h"
#include "tests/towers/matrix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define W(i, devices) "/job:worker/task:" #i "/" devices
#define PS(i)         "/job:ps/task:" #i "/cpu:0"
#define TWO           W(0, "cpu:0") "," W(1, "cpu:0")
#define UNEQUAL       W(0, "cpu:0-2") "," W(1, "cpu:0")
#define THREE         W(0, "cpu:0-1") "," W(1, "cpu:0") "," W(2, "cpu:0-1")

/* `then` is where the second batch trains. */
static const struct {
  struct matrix_layout layout, then;
  int towers;
} clusters[] = {
    {{WITH_multi_worker_mirrored, TWO, {0}, OF_TOWERS, 0}, {0}, 2},
    {{WITH_multi_worker_mirrored, THREE, {0}, OF_TOWERS, 0}, {0}, 7},
    {{WITH_multi_worker_mirrored, UNEQUAL, {0}, OF_TOWERS, 0}, {0}, 5},
    {{WITH_multi_worker_mirrored, UNEQUAL, {.packs = 2}, OF_TOWERS, 0}, {0}, 5},
    {{WITH_multi_worker_mirrored, THREE, {.cross_device = "hierarchical_copy"}, OF_TOWERS, 0}, {0}, 4},
    {{WITH_multi_worker_mirrored, THREE, {.cross_device = "ring"}, OF_DEVICES, 0}, {0}, 5},
    {{WITH_multi_worker_mirrored, THREE, {.cross_device = "scatter"}, OF_TOWERS, 0}, {0}, 7},
    {{WITH_parameter_server, TWO "," PS(0), {0}, OF_TOWERS, 0}, {0}, 2},
    {{WITH_parameter_server, PS(0) "," UNEQUAL "," PS(1), {.min_part_bytes = 16}, OF_TOWERS, 0}, {0}, 4},
    {{WITH_parameter_server, TWO "," PS(0), {.asynchronous = true}, OF_WORKERS, 0}, {0}, 2},
    {{WITH_parameter_server,
      TWO "," PS(0) "," PS(1),
      {.asynchronous = true, .staleness = 1, .min_part_bytes = 16},
      OF_WORKERS,
      0},
     {0},
     4},
    {{WITH_central_storage, THREE, {0}, OF_TOWERS, 0}, {0}, 7},
    {{WITH_central_storage, UNEQUAL, {0}, OF_TOWERS, 0},
     {WITH_multi_worker_mirrored, UNEQUAL, {0}, OF_TOWERS, 0},
     3},
    {{WITH_central_storage, TWO, {0}, OF_TOWERS, 0}, {WITH_multi_worker_mirrored, TWO, {0}, OF_TOWERS, 0}, 2},
    {{WITH_round_robin, THREE, {.balance = "size"}, OF_TOWERS, 0}, {0}, 5},
    {{WITH_round_robin, TWO, {0}, OF_TOWERS, 0}, {0}, 3},
};
enum {
  NCLUSTERS = sizeof clusters / sizeof *clusters,
  ROWS = 7,
  MORE_ROWS = 29,
  NJOBS = 5,
  MOST_PROCESSES = 4
};

/* What a session does, as plans of one process and of several. */
struct work {
  struct matrix_subject subject, more;
  struct target target;
  int processes;
  const char *backend;
  struct engine_job alone[NJOBS], together[NJOBS], parts[MOST_PROCESSES][NJOBS];
  int njobs;
  bool has_parts, in_parts; /* each process has planned its own part; that is what runs */
  int messages;
  struct process_results {
    struct arena *arena;
    struct values variables, outputs[NJOBS];
    const char *wrong;
  } of[MOST_PROCESSES];
};

/* The task of a process: "worker:1". */
static const char *task_of(struct arena *a, const struct target *t, int process) {
  int *of = arena_new_array(a, (size_t)t->ndevices, int), d = 0;
  target_processes(t, of);
  while (of[d] != process) d++;
  return arena_printf(a, "%s:%d", t->devices[d].name.job, t->devices[d].name.task);
}

/* What each process plans for itself, where that can be. */
static void add_parts(struct work *w, struct matrix_subject *s, const struct graph *source,
                      const struct matrix_layout *l, int towers, int steps) {
  const struct pipeline_options o = {.verify_each = true, .roundtrip = true};
  for (int i = 0; i < w->processes && w->has_parts; i++) {
    struct graph *g = matrix_graph(s, source, l, towers);
    g->config.task = task_of(s->arena, &g->config.target, i);
    g = pipeline_run(s->arena, g, NULL, NULL, &o, &s->diags);
    struct plan *p = g ? plan_build_processes(s->arena, g, &s->diags) : NULL;
    if (!p || !plan_verify(p, &s->diags))
      fail_msg("%s, task %d: %s", matrix_text(s, l, towers), i, diags_text(&s->diags, false));
    w->has_parts = p->part != 0;
    w->parts[i][w->njobs] = (struct engine_job){.plan = p, .inputs = &s->inputs, .steps = steps};
  }
}

static void add_job(struct work *w, struct matrix_subject *s, const struct graph *source,
                    const struct matrix_layout *l, int towers, int steps) {
  if (!source) return;
  const struct pipeline_options o = {.verify_each = true};
  struct graph *fused = pipeline_run(s->arena, matrix_graph(s, source, l, towers), NULL, NULL, &o, &s->diags);
  struct plan *alone = fused ? plan_build(s->arena, fused, &s->diags) : NULL;
  struct plan *together = fused ? plan_build_processes(s->arena, fused, &s->diags) : NULL;
  if (!together || !plan_verify(alone, &s->diags) || !plan_verify(together, &s->diags))
    fail_msg("%s: %s", matrix_text(s, l, towers), diags_text(&s->diags, false));
  w->messages += together->nmessages;
  add_parts(w, s, source, l, towers, steps);
  w->alone[w->njobs] = (struct engine_job){.plan = alone, .inputs = &s->inputs, .steps = steps};
  w->together[w->njobs++] = (struct engine_job){.plan = together, .inputs = &s->inputs, .steps = steps};
}

/* The first plan comes again when another one has moved its arenas. */
static void repeat_job(struct work *w, int job) {
  for (int i = 0; i < w->processes; i++) w->parts[i][w->njobs] = w->parts[i][job];
  w->alone[w->njobs] = w->alone[job];
  w->together[w->njobs++] = w->together[job];
}

/* Runs the jobs with outputs of their own; what was wrong, or NULL. */
static const char *run_jobs(struct engine *e, const struct work *w, const struct engine_job *jobs,
                            struct process_results *r) {
  struct engine_job own[NJOBS];
  struct diags d;
  diags_init(&d, r->arena);
  r->variables = values_copy(r->arena, &w->subject.before);
  for (int i = 0; i < w->njobs; i++) {
    r->outputs[i] = values_make(r->arena);
    own[i] = jobs[i];
    own[i].outputs = &r->outputs[i];
  }
  return engine_run_jobs(e, own, w->njobs, &r->variables, &d) ? NULL : diags_text(&d, false);
}

/* What processes do together besides. */
static const char *agree(struct arena *a, const struct transport *t) {
  unsigned char flags = (unsigned char)(1 << t->rank);
  const char *own = arena_printf(a, "process %d", t->rank), *told = own, **all;
  if (!transport_any(t, &flags) || flags != (1 << t->size) - 1) return "not all flags are seen";
  if (!transport_tell(t, a, &told) || strcmp(told, "process 0") != 0) return "the first is not heard";
  if (!transport_collect(t, a, own, &all)) return "texts do not come";
  for (int i = 0; all && i < t->size; i++)
    if (strcmp(all[i], arena_printf(a, "process %d", i)) != 0) return "a text is another process's";
  return NULL;
}

static void one_process(void *arg, const struct transport *t) {
  struct work *w = arg;
  struct process_results *r = &w->of[t->rank];
  struct engine e;
  r->wrong = "its devices cannot be opened";
  if (!engine_open_task(&e, w->backend, &w->target, t, 1 + t->rank % 2)) return;
  r->wrong = run_jobs(&e, w, w->in_parts ? w->parts[t->rank] : w->together, r);
  if (!r->wrong) r->wrong = agree(r->arena, t);
  engine_close(&e);
}

static bool is_zero(const struct tensor *t) {
  for (int64_t i = 0; i < type_bytes(&t->type); i++)
    if (((const char *)t->data)[i]) return false;
  return true;
}

/* Values and predictions are sent to the first process only. */
static bool has_output(const struct plan *p, const char *name, int process) {
  int output = plan_output(p, OUTPUT_PREDICT, name);
  if (output < 0) output = plan_output(p, OUTPUT_VALUE, name);
  return output < 0 || process == 0 || p->outputs[output].copies[process].buffer >= 0;
}

/* The bits of all tensors, `own`: but for replicas of other processes; of a plan's outputs, zeros where the process has
 * none. */
static const char *difference(struct arena *a, const struct values *want, const struct values *have,
                              const struct plan *p, int process, bool own) {
  if (want->map.count != have->map.count && !own) return "there are others";
  for (uint32_t i = 0; i < want->map.count; i++) {
    const char *name = want->map.entries[i].key;
    if (own && strstr(name, "/replica_") && !values_get(have, name)) continue;
    const struct tensor *x = values_get(want, name), *y = values_get(have, name);
    bool has = !p || has_output(p, name, process);
    if (!y || !type_equal(&x->type, &y->type)) return arena_printf(a, "%s is another", name);
    if (has ? memcmp(x->data, y->data, (size_t)type_bytes(&x->type)) != 0 : !is_zero(y))
      return arena_printf(a, "%s differs", name);
  }
  return NULL;
}

static void compare(struct work *w, const struct process_results *want, const char *what) {
  struct arena *a = w->subject.arena;
  for (int i = 0; i < w->processes; i++) {
    const struct process_results *r = &w->of[i];
    if (r->wrong) fail_msg("%s: process %d: %s", what, i, r->wrong);
    const char *wrong = difference(a, &want->variables, &r->variables, NULL, i, w->in_parts);
    if (wrong) fail_msg("%s: process %d: variable %s", what, i, wrong);
    for (int k = 0; k < w->njobs; k++) {
      const struct plan *p = w->in_parts ? w->parts[i][k].plan : w->together[k].plan;
      wrong = difference(a, &want->outputs[k], &r->outputs[k], p, i, false);
      if (wrong) fail_msg("%s: process %d, plan %d: output %s", what, i, k, wrong);
    }
  }
}

/* One process, then several, with messages delivered in each of these ways. */
static void run_all(struct work *w, const char *devices, const char *what, int first, int last) {
  struct process_results want = {.arena = w->subject.arena};
  struct engine e;
  if (!engine_open_on(&e, w->backend, devices, 2)) fail();
  want.wrong = run_jobs(&e, w, w->alone, &want);
  engine_close(&e);
  if (want.wrong) fail_msg("%s: one process: %s", what, want.wrong);
  for (int delivery = first; delivery <= last; delivery++) {
    for (int i = 0; i < w->processes; i++) w->of[i] = (struct process_results){.arena = arena_create()};
    const char *wrong = processes_run(w->subject.arena, w->processes, (enum delivery)delivery,
                                      (uint64_t)delivery + number_from("TEST_SEED", 0), one_process, w);
    if (wrong) fail_msg("%s: %s", what, wrong);
    compare(w, &want, what);
    for (int i = 0; i < w->processes; i++) arena_destroy(w->of[i].arena);
  }
}

static int messages, sessions, parted;

static void try_cluster(int sample, int cluster, const char *backend, int first, int last) {
  const struct matrix_layout *l = &clusters[cluster].layout,
                             *then = clusters[cluster].then.devices ? &clusters[cluster].then : l;
  int towers = clusters[cluster].towers, of[32];
  /* In parts no process can begin its copies with what another one alone has. */
  struct work w = {.backend = backend, .has_parts = then == l};
  struct engine e;
  if (!engine_open(&e, backend, 1)) fail();
  matrix_begin(&w.subject, &matrix_samples[sample], &cpu_layouts[0], ROWS, 1, &e);
  matrix_begin(&w.more, &matrix_samples[sample], &cpu_layouts[0], MORE_ROWS, 2, &e);
  engine_close(&e);
  if (!target_parse(w.subject.arena, l->devices, &w.target, &w.subject.diags, LOC_NONE)) fail();
  w.processes = target_processes(&w.target, of);
  add_job(&w, &w.subject, w.subject.model->train, l, towers, 3);
  add_job(&w, &w.more, w.more.model->train, then, towers, 2);
  if (then == l) repeat_job(&w, 0); /* else it leaves the new replicas behind */
  if (l->strategy !=
      WITH_round_robin) { /* whose homes go by all variables of a graph, unless a session gives them */
    add_job(&w, &w.more, w.more.model->eval, then, towers, 1);
    add_job(&w, &w.subject, w.subject.model->predict, then, towers, 1);
  }
  run_all(&w, l->devices, matrix_text(&w.subject, l, towers), first, last);
  w.in_parts = w.has_parts;
  if (w.in_parts) {
    const char *what = arena_printf(w.subject.arena, "%s, each its part", matrix_text(&w.subject, l, towers));
    run_all(&w, l->devices, what, first, last);
    parted++;
  }
  messages += w.messages;
  sessions += 1 + last - first;
  matrix_end(&w.subject);
  matrix_end(&w.more);
}

/* However messages are delivered; with TEST_SHARE each cluster in one of the ways. */
static void interpreted(void **state) {
  (void)state;
  int share = (int)number_from("TEST_SHARE", 1);
  messages = sessions = parted = 0;
  for (int i = 0; i < NCLUSTERS; i++)
    if (share > 1)
      try_cluster(i / DELIVERIES % 2, i, "interp", i % DELIVERIES, i % DELIVERIES);
    else
      try_cluster(i % 2, i, "interp", 0, DELIVERIES - 1);
  print_message("%d sessions, %d messages in their plans; %d clusters in parts\n", sessions, messages,
                parted);
  assert_true(messages > 0 && parted >= 9);
}

/* What each task plans for itself: rows that are gathered, values that all start from, towers without rows. */
static void samples_in_parts(void **state) {
  (void)state;
  static const int samples[] = {3, 4, 6};
  for (int i = 0; i < 3; i++)
    for (int cluster = 0; cluster < 3; cluster++) {
      int before = parted;
      try_cluster(samples[i], cluster, "interp", DELIVER_ANY, DELIVER_ANY);
      assert_int_equal(parted, before + 1);
    }
}

/* As users run it. */
static void compiled(void **state) {
  (void)state;
  if (!backend_find("cpu")) skip();
  for (int i = 0; i < NCLUSTERS; i++) try_cluster((i + 1) % 2, i, "cpu", DELIVER_ANY, DELIVER_ANY);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(interpreted), cmocka_unit_test(samples_in_parts),
                                     cmocka_unit_test(compiled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A process of a cluster that is stuck, at any of its messages: all others give up, and blame that one and none
 * that waits for it itself, with the step and the value that it has not sent or taken; and one that has died is
 * not waited for. Processes are threads, and time is their transport's: it goes on only when all that are well
 * wait. */
#include "passes/pass.h"
#include "planner/planner.h"
#include "runtime/engines.h"
#include "tests/support/processes.h"
#include "tests/towers/matrix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define W(i)  "/job:worker/task:" #i "/cpu:0"
#define PS(i) "/job:ps/task:" #i "/cpu:0"

static const struct {
  struct matrix_layout layout;
  int towers;
  const char *tasks[4]; /* by process */
} clusters[] = {
    {{WITH_multi_worker_mirrored, W(0) "," W(1), {0}, OF_TOWERS, 0}, 2, {"worker/task:0", "worker/task:1"}},
    {{WITH_multi_worker_mirrored, W(0) "," W(1) "," W(2), {.cross_device = "ring"}, OF_DEVICES, 0},
     3,
     {"worker/task:0", "worker/task:1", "worker/task:2"}},
    {{WITH_multi_worker_mirrored,
      W(0) "," W(1) "," W(2) "," W(3),
      {.cross_device = "hierarchical_copy"},
      OF_TOWERS,
      0},
     4,
     {"worker/task:0", "worker/task:1", "worker/task:2", "worker/task:3"}},
    {{WITH_parameter_server, PS(0) "," W(0) "," W(1) "," PS(1), {.min_part_bytes = 16}, OF_TOWERS, 0},
     2,
     {"ps/task:0", "worker/task:0", "worker/task:1", "ps/task:1"}},
};
enum { NCLUSTERS = sizeof clusters / sizeof *clusters, STEPS = 3, LIMIT = 5 };
static const char *const hosts[] = {"north", "east", "south", "west"}; /* of the transport */

struct work {
  struct matrix_subject subject;
  struct target target;
  struct plan *plan;
  int cluster, processes, stuck, step; /* who, at which step */
  const char *said[4];
  struct tally tally[4];
  struct arena *arenas[4];
};

static void begin(struct work *w, int cluster) {
  const struct matrix_layout *l = &clusters[cluster].layout;
  const struct pipeline_options o = {.verify_each = true};
  struct engine e;
  int of[8];
  *w = (struct work){.cluster = cluster};
  if (!engine_open(&e, "interp", 1)) fail();
  matrix_begin(&w->subject, &matrix_samples[0], &cpu_layouts[0], 7, 1, &e);
  engine_close(&e);
  struct matrix_subject *s = &w->subject;
  if (!target_parse(s->arena, l->devices, &w->target, &s->diags, LOC_NONE)) fail();
  w->processes = target_processes(&w->target, of);
  struct graph *g = matrix_graph(s, s->model->train, l, clusters[cluster].towers);
  struct graph *fused = pipeline_run(s->arena, g, NULL, NULL, &o, &s->diags);
  w->plan = fused ? plan_build_processes(s->arena, fused, &s->diags) : NULL;
  if (!w->plan || !plan_verify(w->plan, &s->diags)) fail_msg("%s", diags_text(&s->diags, false));
}

static void one_process(void *arg, const struct transport *t) {
  struct work *w = arg;
  struct engine e;
  struct diags d;
  struct arena *a = w->arenas[t->rank];
  diags_init(&d, a);
  w->said[t->rank] = "";
  transport_limit(t, LIMIT);
  if (!engine_open_task(&e, "interp", &w->target, t, 1)) return;
  e.limit = LIMIT;
  struct values variables = values_copy(a, &w->subject.before);
  bool done = engine_run(&e, w->plan, &w->subject.inputs, &variables, NULL, STEPS, &d);
  if (!done && d.nerrors == 0) engines_status(e.engines, &d); /* before or behind the runs */
  if (!done) w->said[t->rank] = diags_text(&d, false);
  engine_close(&e);
  w->tally[t->rank] = *t->tally;
  w->tally[t->rank].waiting =
      arena_copy(a, t->tally->waiting, (size_t)w->processes * sizeof *t->tally->waiting);
}

/* Whether there is a message with this value from the process, or to it. */
static bool is_of(const struct work *w, const char *value, size_t len, bool sent, int process) {
  const struct plan *p = w->plan;
  for (int i = 0; i < p->nmessages; i++) {
    const struct message *m = &p->messages[i];
    const char *name = m->node->inputs[0]->name;
    if (p->processes[sent ? m->from : m->to] == process && strlen(name) == len &&
        memcmp(name, value, len) == 0)
      return true;
  }
  return false;
}

/* "error: /job:worker/task:2 on south has not sent h.kernel.grad of step 81 for 5 s, and does not answer" */
static void must_blame(struct work *w, int process, const char *what) {
  const char *task = clusters[w->cluster].tasks[w->stuck], *text = w->said[process];
  struct arena *a = w->subject.arena;
  const char *head = arena_printf(a, "error: /job:%s on %s has not ", task, hosts[w->stuck]);
  const char *note = arena_printf(a, "\nnote: /job:%s on %s waits for ", clusters[w->cluster].tasks[process],
                                  hosts[process]);
  const char *tail = strstr(text, " of step ");
  int step = 0, seconds = 0, end = 0;
  bool right = strncmp(text, head, strlen(head)) == 0 && tail &&
               sscanf(tail, " of step %d for %d s, and does not answer\n%n", &step, &seconds, &end) == 2 &&
               end > 0 && strstr(text, note);
  if (!right) fail_msg("%s: process %d says\n%s\nand not\n%s...%s...", what, process, text, head, note);
  const char *value = text + strlen(head) + 5; /* "sent ", or "taken" and a space */
  bool sent = strncmp(value - 5, "sent ", 5) == 0;
  value += !sent;
  if (!is_of(w, value, (size_t)(tail - value), sent, w->stuck))
    fail_msg("%s: %s does not %s that:\n%s", what, task, sent ? "send" : "take", text);
  /* who takes no part in a sum may have come to the next step */
  if (step != w->step && step != w->step + 1) fail_msg("%s: not step %d\n%s", what, w->step, text);
}

/* "error: /job:worker/task:2 on south has ended" */
static void must_mourn(struct work *w, int process, const char *what) {
  const char *tasks[] = {clusters[w->cluster].tasks[w->stuck], clusters[w->cluster].tasks[process]};
  const char *head =
      arena_printf(w->subject.arena, "error: /job:%s on %s has ended\nnote: /job:%s on %s waits for ",
                   tasks[0], hosts[w->stuck], tasks[1], hosts[process]);
  if (strncmp(w->said[process], head, strlen(head)) != 0)
    fail_msg("%s: process %d says\n%s\nand not\n%s...", what, process, w->said[process], head);
}

static int count_sent(const struct plan *p, int process) {
  int count = 0;
  for (int i = 0; i < p->nmessages; i++) count += p->processes[p->messages[i].from] == process;
  return count;
}

static void try_stuck(struct work *w, int process, int after, bool dead) {
  const struct trouble trouble = {.stuck = process, .after = after, .dead = dead};
  w->stuck = process;
  w->step = 1 + after / count_sent(w->plan, process);
  for (int i = 0; i < w->processes; i++) w->arenas[i] = arena_create();
  processes_run_in_trouble(w->subject.arena, w->processes, &trouble, one_process, w);
  for (int i = 0; i < w->processes; i++) {
    const char *what =
        arena_printf(w->subject.arena, "%s, %s is stuck after %d messages",
                     clusters[w->cluster].layout.devices, clusters[w->cluster].tasks[process], after);
    if (i != process) (dead ? must_mourn : must_blame)(w, i, what);
  }
  for (int i = 0; i < w->processes; i++) arena_destroy(w->arenas[i]);
}

static void try_all(bool dead) {
  int tried = 0;
  for (int i = 0; i < NCLUSTERS; i++) {
    struct work w;
    begin(&w, i);
    for (int process = 0; process < w.processes; process++) {
      int each = count_sent(w.plan, process);
      for (int after = 0; after < 2 * each; after += 1 + each / 2, tried++)
        try_stuck(&w, process, after, dead);
    }
    matrix_end(&w.subject);
  }
  print_message("%d processes were %s\n", tried, dead ? "dead" : "stuck");
  assert_true(tried > 0);
}

static void who_is_stuck_is_blamed(void **state) {
  (void)state;
  try_all(false);
}

static void who_has_died_is_not_waited_for(void **state) {
  (void)state;
  try_all(true);
}

/* Of other processes the one that it has waited for longest. */
static int waits_for(const struct work *w, int process) {
  int longest = -1;
  for (int i = 0; i < w->processes; i++) {
    const uint64_t *waiting = w->tally[process].waiting;
    if (i != process && waiting[i] > 0 && (longest < 0 || waiting[i] > waiting[longest])) longest = i;
  }
  return longest;
}

/* To the nanosecond: what a process computes, and it waits for nobody but who is slower, or waits for one who is. */
static void must_tell_time(const struct work *w, int process, int slow, const uint64_t *pace) {
  const struct plan *p = w->plan;
  int64_t bytes = 0;
  int at = process;
  for (int i = 0; i < p->nmessages; i++)
    if (p->processes[p->messages[i].from] == process) bytes += p->messages[i].bytes;
  assert_int_equal(w->tally[process].sent, STEPS * bytes);
  assert_int_equal(w->tally[process].computing, (uint64_t)(STEPS * count_sent(p, process)) * pace[process]);
  for (int hops = 0; at != slow && hops < w->processes; hops++) {
    at = waits_for(w, at);
    assert_true(at >= 0);
  }
  if (at != slow)
    fail_msg("%s: %s does not wait for %s", clusters[w->cluster].layout.devices,
             clusters[w->cluster].tasks[process], clusters[w->cluster].tasks[slow]);
}

/* Who is only slow is not late by this clock; and all know for whom they wait. */
static void who_is_slow_is_known(void **state) {
  (void)state;
  for (int i = 0; i < NCLUSTERS; i++) {
    struct work w;
    begin(&w, i);
    for (int slow = 0; slow < w.processes; slow++) {
      uint64_t pace[] = {3000000, 2000000, 3000000, 1000000};
      pace[slow] = 100000000;
      const struct trouble trouble = {.stuck = -1, .pace = pace};
      for (int k = 0; k < w.processes; k++) w.arenas[k] = arena_create();
      processes_run_in_trouble(w.subject.arena, w.processes, &trouble, one_process, &w);
      for (int k = 0; k < w.processes; k++) {
        assert_string_equal(w.said[k], "");
        must_tell_time(&w, k, slow, pace);
      }
      for (int k = 0; k < w.processes; k++) arena_destroy(w.arenas[k]);
    }
    matrix_end(&w.subject);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(who_is_stuck_is_blamed),
                                     cmocka_unit_test(who_has_died_is_not_waited_for),
                                     cmocka_unit_test(who_is_slow_is_known)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the memory and traffic report of a plan says is what happens: printed bytes of arenas are the high-water marks
 * of the commands, printed bytes between devices are those that commands copy. */
#include "ir/ops/op_id.h"
#include "tests/towers/samples.h"

#include "ir/plan/report.h"
#include "planner/planner.h"
#include "tests/support/engine.h"
#include "tests/support/traffic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bench {
  struct backend backend; /* the CPU's, whose kernels and leaves do nothing: no number is looked at */
  struct workers *workers;
  int copies, aliases; /* edges with bytes, and without */
};

/* The number behind the first line that begins so; -1 if there is none. */
static int64_t number_behind(const char *text, const char *line) {
  const char *at = strstr(text, line);
  return at ? strtoll(at + strlen(line), NULL, 10) : -1;
}

/* The number in front of `what` in the device's part of the memory's text. */
static int64_t arena_of(struct arena *a, const char *text, const char *device) {
  const char *part = strstr(text, arena_printf(a, "\n  %s: ", device));
  const char *line = part ? strstr(part, " arena") : NULL;
  if (!line) return -1;
  while (line > part && line[-1] >= '0' && line[-1] <= '9') line--;
  return strtoll(line, NULL, 10);
}

/* The numbers that are shown of a device add up. */
static const char *sums_wrong(struct arena *a, const struct plan *p) {
  struct inventory v = plan_inventory(a, p);
  for (int d = 0; d < p->ndevices; d++) {
    struct memory_need m = memory_need(a, &v, d);
    int64_t fixed = 0, live = 0;
    for (int k = 0; k < PURPOSE_COUNT; k++) fixed += m.fixed[k], live += m.at_peak[k];
    int64_t stored = p->devices[d].bytes[REGION_VARIABLE] + p->devices[d].bytes[REGION_CONSTANT];
    if (fixed != stored || live != m.peak || m.peak > m.arena || m.total != m.arena + fixed)
      return arena_printf(a, "the sums of device %d do not add up", d);
  }
  return NULL;
}

static const char *memory_wrong(struct arena *a, const struct plan *p, const struct exec *e) {
  struct str s = str_make(a);
  plan_print_memory(&s, p);
  for (int d = 0; d < p->ndevices; d++) {
    int64_t printed = arena_of(a, s.data, p->graph->config.target.devices[d].text);
    if (printed != exec_high_water(e, d))
      return arena_printf(a, "device %d: %lld bytes are printed, and the high-water mark is %lld\n%s", d,
                          (long long)printed, (long long)exec_high_water(e, d), s.data);
  }
  return sums_wrong(a, p);
}

static const char *traffic_wrong(struct arena *a, const struct plan *p, const struct exec *e,
                                 struct bench *b) {
  struct str s = str_make(a);
  plan_print_traffic(&s, p);
  const struct device *devices = p->graph->config.target.devices;
  int64_t total = 0;
  for (int from = 0; from < p->ndevices; from++)
    for (int to = 0; to < p->ndevices; to++) {
      if (from == to) continue;
      int64_t counted = commands_traffic(e, from, to);
      int64_t printed =
          number_behind(s.data, arena_printf(a, "\n  %s -> %s: ", devices[from].text, devices[to].text));
      if ((printed < 0 ? 0 : printed) != counted)
        return arena_printf(a, "%s -> %s: %lld bytes are printed, and %lld were copied\n%s",
                            devices[from].text, devices[to].text, (long long)printed, (long long)counted,
                            s.data);
      if (printed == 0) b->aliases++;
      b->copies += counted > 0;
      total += counted;
    }
  int count;
  const struct transfer *all = plan_transfers(a, p, &count);
  for (int i = 0; i < count; i++) /* what is kept is kept twice; nothing else is copied within a memory */
    if (all[i].bytes && devices[all[i].from].memory == devices[all[i].to].memory &&
        all[i].node->op != OP_assign)
      return arena_printf(a, "%s is copied within a memory\n%s", all[i].node->name, s.data);
  if (number_behind(s.data, "\n  all: ") != total) return arena_printf(a, "the total is wrong\n%s", s.data);
  return NULL;
}

/* One run, on inputs and variables that are zeros. */
static bool run_once(struct arena *a, const struct plan *p, struct store *s, struct exec *e) {
  for (int i = 0; i < store_count(s); i++) {
    struct stored_variable *v = store_at(s, i);
    store_write(s, v, arena_alloc(a, v->bytes));
    v->filled = true;
  }
  for (int i = 0; i < p->ninputs; i++)
    exec_write(e, i, arena_alloc(a, (size_t)type_bytes(&p->inputs[i].type)));
  return exec_run(e);
}

static void do_nothing(void *const *args, const void *state) { (void)args, (void)state; }

static bool prepare_nothing(void *self, struct arena *a, const struct step *step, int device,
                            struct command *c, struct diags *d) {
  (void)self, (void)a, (void)step, (void)device, (void)d;
  c->kind = COMMAND_CALL;
  c->call = do_nothing;
  c->state = NULL;
  return true;
}

static const char *check(struct arena *a, const struct sample_case *c, void *user) {
  struct bench *b = user;
  struct diags d;
  diags_init(&d, a);
  struct plan *p = plan_build(a, c->graph, &d);
  if (!p) return diags_text(&d, false);
  struct engines *engines =
      engines_open(&c->graph->config.target, (const struct backend *[]){&b->backend, NULL}, &d);
  assert_non_null(engines);
  struct store *s = store_create(engines);
  struct exec *e = exec_load(p, engines, s, b->workers, &d);
  const char *wrong = e && run_once(a, p, s, e) ? memory_wrong(a, p, e) : diags_text(&d, false);
  if (e && !wrong) wrong = traffic_wrong(a, p, e, b);
  exec_unload(e);
  store_destroy(s);
  engines_close(engines);
  return wrong;
}

static void reports(void **state) {
  (void)state;
  struct diags d;
  struct arena *a = arena_create();
  diags_init(&d, a);
  struct bench b = {.backend = *backend_find(NULL), .workers = workers_create(2, &d)};
  b.backend.compile = NULL;
  b.backend.prepare = prepare_nothing;
  assert_non_null(b.workers);
  static const char *const lists[] = {
      "cpu:0",
      "cpu:0-2",
      "/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0",
      "/job:worker/task:0/cpu:0-1,/job:worker/task:1/cpu:0-1",
      "/job:ps/task:0/cpu:0,/job:ps/task:1/cpu:0,/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0",
      NULL,
  };
  each_sample(lists, 6, true, true, check, &b);
  print_message("%d edges with copies, %d with aliases\n", b.copies, b.aliases);
  assert_true(b.copies > 100);
  assert_true(b.aliases > 100);
  workers_destroy(b.workers);
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reports)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The executor on devices that work behind the host: meetings, plans over host and devices, recordings, failures.
 * With an argument those devices are threads, and there are more models. */
#include "tests/support/async_backend.h"
#include "tests/support/engine.h"
#include "tests/support/expect.h"
#include "tests/support/graphs.h"
#include "tests/support/traffic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/hand_plan.h"

static bool with_threads;

/* How the devices are that are opened from now on. */
static void configure(struct async_options o) {
  o.threads = with_threads;
  async_configure(o);
}

/* --- plans by hand: additions and copies of vectors --- */

struct fixture {
  struct arena *arena;
  struct diags diags;
  struct engines *engines;
  struct graph graph;
  struct plan plan;
  struct kernel add;
  struct store *store;
  struct workers *workers;
};

static struct kernel addition(struct arena *a) {
  struct kernel k = {.rank = 1, .nargs = 3, .noutputs = 1, .name = "add"};
  for (int i = 0; i < 3; i++) k.args[i] = (struct kernel_arg){DT_F32, STRIDE_ONE, i == 2};
  k.body = sprog_make(a);
  k.epilogue = sprog_make(a);
  k.result[0] = s_binary(&k.body, S_ADD, s_arg(&k.body, 0, DT_F32), s_arg(&k.body, 1, DT_F32));
  kernel_settle(&k);
  return k;
}

static void start(struct fixture *f, const char *list, int nthreads) {
  *f = (struct fixture){.arena = arena_create()};
  struct arena *a = f->arena;
  diags_init(&f->diags, a);
  struct target *t = &f->graph.config.target;
  assert_true(target_parse(a, list, t, &f->diags, LOC_NONE));
  f->add = addition(a);
  f->plan = hand_plan(a, &f->graph, 1, (const struct kernel *[]){&f->add});
  f->workers = workers_create(nthreads, &f->diags);
  f->engines = engines_open(t, (const struct backend *[]){&backend_async, &backend_interp, NULL}, &f->diags);
  f->store = store_create(f->engines);
}

static void finish(struct fixture *f) {
  store_destroy(f->store);
  engines_close(f->engines);
  workers_destroy(f->workers);
  arena_destroy(f->arena);
  assert_int_equal(async_counts().allocations, 0);
}

static void add_step(struct fixture *f, int device, int x, int y, int z) {
  hand_kernel(&f->plan, device, &f->add, x, y, z);
}

static void copy_step(struct fixture *f, int device, int from, int to) {
  struct step *s = hand_step(&f->plan, device, STEP_COPY);
  hand_operands(&f->plan, s, 2, (int[]){from, to});
  s->bytes = BYTES;
}

/* A value goes round all devices `rounds` times, and doubles at each. The factor. */
static float ring(struct fixture *f, int rounds) {
  int n = f->plan.ndevices, here[16], from = hand_buffer(&f->plan, 0, REGION_ARENA), last = 0;
  float factor = 1;
  for (int d = 0; d < n; d++) here[d] = hand_buffer(&f->plan, d, REGION_ARENA);
  hand_input(&f->plan, from);
  for (int i = 0; i < rounds * n; i++, factor *= 2) {
    int d = i % n;
    if (d != last) hand_meet(&f->plan, last, d);
    int x = from;
    if (d != last) copy_step(f, d, from, x = hand_buffer(&f->plan, d, REGION_ARENA));
    add_step(f, d, x, x, here[d]);
    from = here[d];
    last = d;
  }
  hand_output(&f->plan, from);
  return factor;
}

/* All devices take the first one's input and double it, and the first one adds up what they have. The factor. */
static float fan(struct fixture *f) {
  int n = f->plan.ndevices, x = hand_buffer(&f->plan, 0, REGION_ARENA),
      sum = hand_buffer(&f->plan, 0, REGION_ARENA);
  hand_input(&f->plan, x);
  add_step(f, 0, x, x, sum);
  for (int d = 1; d < n; d++) {
    int own = hand_buffer(&f->plan, d, REGION_ARENA), twice = hand_buffer(&f->plan, d, REGION_ARENA),
        back = hand_buffer(&f->plan, 0, REGION_ARENA);
    copy_step(f, d, x, own);
    add_step(f, d, own, own, twice);
    hand_meet(&f->plan, d, 0);
    copy_step(f, 0, twice, back);
    add_step(f, 0, sum, back, sum);
  }
  hand_output(&f->plan, sum);
  return 2 * (float)n;
}

static struct exec *load(struct fixture *f) {
  struct exec *e = exec_load(&f->plan, f->engines, f->store, f->workers, &f->diags);
  assert_non_null(e);
  return e;
}

/* `y` is NULL where nothing is computed. */
static bool run_once(struct exec *e, float x, float *y) {
  float in[N], out[N];
  for (int i = 0; i < N; i++) in[i] = x;
  if (!exec_write(e, 0, in) || !exec_run(e) || !exec_read(e, 0, out)) return false;
  for (int i = 1; y && i < N; i++) assert_true(out[i] == out[0]);
  if (y) *y = out[0];
  return true;
}

static const char *const lists[] = {"gpu:0",
                                    "gpu:0-1",
                                    "gpu:0-4",
                                    "cpu:0,gpu:0",
                                    "gpu:0,cpu:0",
                                    "cpu:0-2,gpu:0-2",
                                    "gpu:1,cpu:0,gpu:0,cpu:1"};
enum { NLISTS = sizeof lists / sizeof *lists };

/* A plan that has been run `steps` times for each way to share its devices out. */
static void right(bool is_ring, const char *list, int threads, uint64_t seed, bool recordable) {
  struct fixture f;
  configure((struct async_options){.seed = seed, .recordable = recordable, .stuck = -1});
  start(&f, list, threads);
  float factor = is_ring ? ring(&f, 2) : fan(&f), y;
  struct exec *e = load(&f);
  for (int i = 1; i < 10; i++) {
    assert_true(run_once(e, (float)i, &y));
    assert_true(y == (float)i * factor);
  }
  exec_unload(e);
  finish(&f);
}

static void devices_and_threads(void **state) {
  (void)state;
  for (int l = 0; l < NLISTS; l++)
    for (int threads = 1; threads <= 3; threads++)
      for (uint64_t seed = 0; seed < 4; seed++) right(seed & 1, lists[l], threads, seed, seed & 2);
}

/* --- meetings --- */

static void remove_step(struct device_plan *d, int at) {
  memmove(&d->steps[at], &d->steps[at + 1], (size_t)(--d->nsteps - at) * sizeof *d->steps);
}

/* Accesses that nothing orders, in three runs of a plan without wait number `without`. -1 if there is none. */
static int unordered(bool is_ring, const char *list, int without, bool recordable) {
  struct fixture f;
  configure((struct async_options){.check = true, .recordable = recordable, .stuck = -1});
  start(&f, list, 1);
  if (is_ring)
    ring(&f, 2);
  else
    fan(&f);
  bool found = without < 0;
  for (int d = 0, n = 0; d < f.plan.ndevices; d++)
    for (int i = 0; i < f.plan.devices[d].nsteps; i++)
      if (f.plan.devices[d].steps[i].kind == STEP_WAIT && n++ == without) {
        remove_step(&f.plan.devices[d], i);
        found = true;
        break;
      }
  struct exec *e = load(&f);
  for (int i = 0; i < 3; i++) assert_true(run_once(e, 1, NULL));
  exec_unload(e);
  finish(&f);
  return found ? async_counts().unordered : -1;
}

/* Every wait is needed, and the devices meet by it: without it something is not ordered any more. */
static void every_wait(void **state) {
  (void)state;
  static const char *const all[] = {"gpu:0-1", "gpu:0-4"};
  for (int i = 0; i < 8; i++) {
    bool is_ring = i & 1, recordable = i & 2;
    const char *list = all[i / 4];
    assert_int_equal(unordered(is_ring, list, -1, recordable), 0);
    int waits = 0;
    for (int missing; (missing = unordered(is_ring, list, waits, recordable)) >= 0; waits++)
      assert_true(missing > 0);
    assert_true(waits > 0);
  }
}

/* --- recordings --- */

static void recordings(void **state) {
  (void)state;
  struct fixture f;
  configure((struct async_options){.recordable = true, .stuck = -1});
  start(&f, "gpu:0-1", 1);
  float factor = ring(&f, 1), y;
  struct exec *e = load(&f);
  for (int i = 0; i < 5; i++) assert_true(run_once(e, 3, &y) && y == 3 * factor);
  assert_int_equal(async_counts().recorded, 1);
  assert_int_equal(async_counts().replayed, 4);
  struct plan first = f.plan;
  f.plan.devices = arena_copy(f.arena, first.devices, 2 * sizeof *first.devices);
  f.plan.devices[0].bytes[REGION_ARENA] += 1 << 20;
  struct exec *large = load(&f); /* moves the arena */
  for (int i = 0; i < 3; i++) assert_true(run_once(e, 5, &y) && y == 5 * factor);
  assert_int_equal(async_counts().forgotten, 1);
  assert_int_equal(async_counts().recorded, 2);
  assert_true(run_once(large, 7, &y) && y == 7 * factor);
  uint64_t busy[2];
  struct exec_times t = {.busy = busy};
  assert_true(exec_run_timed(e, &t));
  assert_true(t.wall > 0 && busy[0] >= 3 && busy[1] >= 3);
  exec_unload(large);
  exec_unload(e);
  assert_int_equal(async_counts().forgotten, 2);
  finish(&f);
}

/* An input in memory of the host is not overwritten while a device still reads it. */
static void input_on_host(void **state) {
  (void)state;
  struct fixture f;
  configure((struct async_options){.recordable = true, .stuck = -1});
  start(&f, "gpu:0,cpu:0", 1);
  int x = hand_buffer(&f.plan, 1, REGION_ARENA), own = hand_buffer(&f.plan, 0, REGION_ARENA),
      sum = hand_buffer(&f.plan, 0, REGION_ARENA);
  f.plan.buffers[sum] =
      (struct plan_buffer){.name = "sum", .region = REGION_VARIABLE, .bytes = BYTES, .type = vector_type()};
  hand_input(&f.plan, x);
  copy_step(&f, 0, x, own);
  add_step(&f, 0, sum, own, sum);
  struct exec *e = load(&f);
  float values[N] = {0};
  assert_true(store_write(f.store, store_find(f.store, "sum"), values));
  for (int i = 1; i <= 100; i++) {
    for (int k = 0; k < N; k++) values[k] = (float)i;
    assert_true(exec_write(e, 0, values) && exec_run(e));
  }
  assert_true(store_read(f.store, store_find(f.store, "sum"), values));
  for (int k = 0; k < N; k++) assert_true(values[k] == 5050);
  assert_int_equal(async_counts().replayed, 99);
  exec_unload(e);
  finish(&f);
}

/* --- failures --- */

/* Three runs in which call number `fail` fails; whether there was one. */
static bool fails(const char *list, int fail, bool recordable) {
  struct fixture f;
  configure((struct async_options){.fail_at = fail, .recordable = recordable, .stuck = -1});
  start(&f, list, 2);
  float factor = ring(&f, 2), y;
  struct exec *e = load(&f);
  bool good = true;
  for (int i = 1; i <= 3 && good; i++) {
    good = run_once(e, (float)i, &y);
    if (good) assert_true(y == (float)i * factor);
  }
  if (!good) {
    assert_int_equal(f.diags.nerrors, 0);
    exec_status(e, &f.diags);
    assert_non_null(strstr(diags_text(&f.diags, false), "farCall: FAR_ERROR_TEST"));
    assert_false(exec_run(e));
  }
  exec_unload(e);
  finish(&f);
  return !good;
}

static void failing_calls(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    int n = 1;
    while (fails(i & 1 ? "gpu:0-2" : "cpu:0,gpu:0-1,cpu:1", n, i & 2)) n++;
    assert_true(n > 10);
  }
}

static void no_memory(void **state) {
  (void)state;
  int n = 1;
  for (bool loaded = false; !loaded; n++) {
    struct fixture f;
    configure((struct async_options){.no_memory_at = n, .stuck = -1});
    start(&f, "gpu:0-1,cpu:0", 1);
    ring(&f, 1);
    struct exec *e = exec_load(&f.plan, f.engines, f.store, f.workers, &f.diags);
    loaded = e != NULL;
    if (!loaded) assert_non_null(strstr(diags_text(&f.diags, false), "no memory for the "));
    exec_unload(e);
    finish(&f);
  }
  assert_int_equal(n, 6); /* constants and arenas of two devices */
}

static void no_backend(void **state) {
  (void)state;
  struct arena *a = arena_create();
  struct diags d;
  struct target t;
  diags_init(&d, a);
  assert_true(target_parse(a, "cpu:0,gpu:0", &t, &d, LOC_NONE));
  bool some = false; /* in this build */
  for (int i = 0; backends[i]; i++) some |= strcmp(backends[i]->kind, "gpu") == 0;
  if (!some) {
    assert_null(engines_open(&t, NULL, &d));
    assert_string_equal(diags_text(&d, false), "error: there is no backend for /gpu:0 in this build\n");
  }
  arena_destroy(a);
}

/* --- the watch --- */

/* A run that cannot end, and is given up after so many seconds. */
struct waiting {
  const char *list, *said; /* what is said of it */
  int threads, rounds, stuck;
  bool no_signals; /* from the first device */
};

/* Whether that is said; all can be left behind. */
static bool is_said(const struct waiting *w, double seconds, char *said, size_t size) {
  struct fixture f;
  configure((struct async_options){.stuck = w->stuck});
  start(&f, w->list, w->threads);
  float factor = ring(&f, w->rounds), y;
  struct device_plan *first = &f.plan.devices[0];
  for (int k = 0; w->no_signals && k < first->nsteps; k++)
    if (first->steps[k].kind == STEP_SIGNAL) remove_step(first, k);
  struct exec *e = load(&f);
  assert_true(exec_set_limit(e, seconds, &f.diags));
  bool good = true;
  for (int i = 1; i < 4 && good; i++) {
    good = run_once(e, (float)i, &y);
    if (good) assert_true(y == (float)i * factor);
  }
  assert_false(good);
  exec_status(e, &f.diags);
  snprintf(said, size, "%s", diags_text(&f.diags, false));
  char limit[80];
  snprintf(limit, sizeof limit, "the step did not end within %g s: ", seconds);
  if (!strstr(said, limit)) fail_msg("%s", said);
  assert_false(exec_run(e));
  if (w->stuck >= 0) assert_false(engines_status(f.engines, &f.diags));
  exec_unload(e);
  store_destroy(f.store);
  engines_close(f.engines);
  if (strstr(w->list, "gpu")) async_release();
  workers_destroy(f.workers);
  arena_destroy(f.arena);
  return strstr(said, w->said);
}

/* A machine that stands still for as long as the limit is said to stand elsewhere: a longer one is tried. */
static void check_said(const struct waiting *w) {
  static const double limits[] = {0.03, 0.5, 4};
  char said[500];
  for (int i = 0; i < 3; i++)
    if (is_said(w, limits[i], said, sizeof said)) return;
  fail_msg("%s", said);
}

/* A signal that nobody gives is waited for no longer than the limit. */
static void no_signal(void **state) {
  (void)state;
  static const struct waiting all[] = {
      {"cpu:0-1", "/cpu:1 waits at step 0 of 3 for signal 0, which nobody gives", 1, 1, -1, true},
      {"gpu:0,cpu:0", "/cpu:0 waits at step 0 of 3 for signal 0, which nobody gives", 2, 1, -1, true},
  };
  for (int i = 0; i < 2; i++) check_said(&all[i]);
}

/* A device that never answers ends the run, and everything can be left behind. */
static void no_answers(void **state) {
  (void)state;
  static const struct waiting all[] = {
      {"gpu:0", "/gpu:0 has not answered", 2, 3, 0, false},
      {"gpu:0-2", "of /gpu:1, which stands at ", 2, 3, 1, false},
      {"cpu:0,gpu:0", "/cpu:0 waits at step 6 of 10 for signal 3 of /gpu:0, which stands at step 4 of 11", 2,
       3, 1, false},
  };
  for (int i = 0; i < 3; i++) check_said(&all[i]);
}

/* --- traffic --- */

static void traffic(void **state) {
  (void)state;
  struct fixture f;
  configure((struct async_options){.recordable = true, .stuck = -1});
  start(&f, "gpu:0-1,cpu:0", 2);
  ring(&f, 2);
  struct exec *e = load(&f);
  assert_true(run_once(e, 1, NULL));
  assert_int_equal(commands_traffic(e, 0, 1), 2 * BYTES);
  assert_int_equal(commands_traffic(e, 1, 2), 2 * BYTES);
  assert_int_equal(commands_traffic(e, 2, 0), BYTES);
  assert_int_equal(commands_traffic(e, 1, 0), 0);
  exec_unload(e);
  finish(&f);
}

/* --- whole models --- */

/* The bits of a model on one device of the host, and on devices that work behind it. */
static void same_bits(uint64_t seed, const struct layout *l, int threads) {
  struct arena *a = arena_create();
  struct diags d;
  struct values inputs, before, after[2], outputs[2];
  for (int i = 0; i < 2; i++) {
    diags_init(&d, a);
    struct model m = random_model(
        a, &(struct model_options){.seed = seed, .size = 20, .batch = true, .updates = true}, &d);
    struct layout plain = {l->towers, "one_device", "cpu:0", NULL};
    int64_t rows = (int64_t)(seed % 3) * 8 + 5;
    model_values(a, m.g, rows, seed, false, &inputs, &before);
    layout_set(m.g, i ? l : &plain, rows, &d);
    struct plan *p = engine_plan(a, m.g, &d);
    if (!p) fail_msg("%s", diags_text(&d, false));
    configure((struct async_options){.seed = seed, .recordable = seed & 1, .stuck = -1});
    struct engine e = {.backend = &backend_async, .workers = workers_create(threads, &d)};
    e.engines = engines_open(&p->graph->config.target,
                             (const struct backend *[]){&backend_async, &backend_interp, NULL}, &d);
    outputs[i] = values_make(a);
    after[i] = values_copy(a, &before);
    if (!engine_run(&e, p, &inputs, &after[i], &outputs[i], 4, &d)) fail_msg("%s", diags_text(&d, false));
    workers_destroy(e.workers);
    engines_close(e.engines);
    assert_int_equal(async_counts().allocations, 0);
  }
  const char *wrong = values_difference(a, &outputs[0], &outputs[1]);
  if (!wrong) wrong = values_difference(a, &after[0], &after[1]);
  if (wrong) fail_msg("seed %d, %s: %s", (int)seed, layout_text(a, l), wrong);
  arena_destroy(a);
}

static void models(void **state) {
  (void)state;
  static const struct layout layouts[] = {
      {1, "one_device", "gpu:0", NULL},           {3, "one_device", "gpu:1", NULL},
      {2, "mirrored", "gpu:0-1", NULL},           {5, "mirrored", "gpu:0-3", NULL},
      {2, "central_storage", "gpu:0-1", NULL},    {4, "central_storage", "cpu:0,gpu:0-2", NULL},
      {3, "mirrored", "cpu:0,gpu:0,cpu:1", NULL}, {4, "central_storage", "gpu:0-2", "/gpu:1"}};
  for (uint64_t seed = 1; seed <= (with_threads ? 5 : 3); seed++)
    for (int i = 0; i < 8; i++) same_bits(seed * 8 + (uint64_t)i, &layouts[i], 1 + (int)(seed % 3));
}

int main(int argc, char **argv) {
  (void)argv;
  with_threads = argc > 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(devices_and_threads), cmocka_unit_test(every_wait),    cmocka_unit_test(recordings),
      cmocka_unit_test(input_on_host),       cmocka_unit_test(failing_calls), cmocka_unit_test(no_memory),
      cmocka_unit_test(no_backend),          cmocka_unit_test(models),        cmocka_unit_test(no_signal),
      cmocka_unit_test(no_answers),          cmocka_unit_test(traffic),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The executor on plans made by hand: order, meetings of devices, threads, arenas and variables. */
#include "base/clock.h"
#include "ir/graph/graph.h"
#include "runtime/exec.h"
#include "runtime/model_variable.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/hand_plan.h"

/* --- a backend whose kernels are C functions: kernel number `nparams` of the list below --- */

static void add(void *const *args, const int64_t *sizes) {
  const float *x = args[0], *y = args[1];
  float *z = args[2];
  for (int64_t i = 0; i < sizes[0]; i++) z[i] = x[i] + y[i];
}

static void nothing(void *const *args, const int64_t *sizes) { (void)args, (void)sizes; }

static kernel_fn *const functions[] = {add, nothing, NULL};

static bool test_compile(void *self, const struct kernel *const *kernels, int count, kernel_fn **out,
                         struct diags *d) {
  (void)self, (void)d;
  for (int i = 0; i < count; i++) out[i] = functions[kernels[i]->nparams];
  return true;
}

/* A step in pieces, of which `together` are begun before one of them ends, and that ends when all are done. */
enum { PIECES = 5 };
static struct {
  int together;
  bool fails; /* one of them finds no memory */
  _Atomic int begun, done;
  uint64_t lasts;        /* nanoseconds of each */
  _Atomic uint64_t took; /* all of them, by this program's own clock */
} meeting;

static void run_pieces(void *const *args, const void *state, int stage, int first, int end) {
  const float *x = args[0];
  float *z = args[2];
  (void)state;
  if (stage == 1) {
    for (int i = 0; i < N; i++) z[i] = meeting.done == PIECES ? 2 * x[i] : -1;
    meeting.begun = meeting.done = 0;
    return;
  }
  uint64_t entered = clock_ns();
  meeting.begun++;
  while (meeting.begun < meeting.together || clock_ns() - entered < meeting.lasts) sched_yield();
  if (meeting.fails && end == PIECES) arena_exhausted();
  meeting.done += end - first;
  meeting.took += clock_ns() - entered;
}

static bool test_prepare(void *self, struct arena *a, const struct step *s, int device, struct command *c,
                         struct diags *d) {
  static const struct pieces pieces = {
      .run = run_pieces, .nstages = 2, .count = {PIECES, 1}, .cost = 1000000000};
  (void)self, (void)a, (void)s, (void)device, (void)d;
  c->kind = COMMAND_PIECES;
  c->pieces = &pieces;
  return true;
}

static struct backend test_backend(void) {
  struct backend b = backend_interp;
  b.compile = test_compile;
  b.prepare = test_prepare;
  return b;
}

/* --- plans --- */

enum { MAX_DEVICES = 64 };

static const struct kernel add_kernel = {
    .rank = 1, .nargs = 3, .noutputs = 1, .nparams = 0, .args = {{0}, {0}, {0}}};
static const struct kernel empty_kernel = {.rank = 1, .nparams = 1};
static const struct kernel shared_kernel = {
    .rank = 1, .nargs = 3, .noutputs = 1, .nparams = 2, .args = {{0}, {0}, {0}}};

struct fixture {
  struct arena *arena;
  struct diags diags;
  struct backend backend;
  struct engines *engines;
  struct graph graph;
  struct plan plan;
  struct store *store;
  struct workers *workers;
};

static void start(struct fixture *f, int ndevices, int nthreads) {
  *f = (struct fixture){.arena = arena_create(), .backend = test_backend()};
  struct arena *a = f->arena;
  diags_init(&f->diags, a);
  char *list = arena_printf(a, "cpu:0-%d", ndevices - 1);
  assert_true(target_parse(a, list, &f->graph.config.target, &f->diags, LOC_NONE));
  f->plan = hand_plan(a, &f->graph, 3, (const struct kernel *[]){&add_kernel, &empty_kernel, &shared_kernel});
  f->engines =
      engines_open(&f->graph.config.target, (const struct backend *[]){&f->backend, NULL}, &f->diags);
  f->store = store_create(f->engines);
  f->workers = workers_create(nthreads, &f->diags);
  assert_non_null(f->workers);
}

static void finish(struct fixture *f) {
  workers_destroy(f->workers);
  store_destroy(f->store);
  engines_close(f->engines);
  arena_destroy(f->arena);
}

static void add_step(struct fixture *f, int device, int x, int y, int z) {
  hand_kernel(&f->plan, device, &add_kernel, x, y, z);
}

static void shared_step(struct fixture *f, int device, int x, int z) {
  hand_kernel(&f->plan, device, &shared_kernel, x, x, z);
}

static struct exec *load(struct fixture *f) {
  struct exec *e = exec_load(&f->plan, f->engines, f->store, f->workers, &f->diags);
  assert_non_null(e);
  return e;
}

static float run_once(struct exec *e, float x) {
  float in[N], out[N];
  for (int i = 0; i < N; i++) in[i] = x;
  exec_write(e, 0, in);
  assert_true(exec_run(e));
  exec_read(e, 0, out);
  for (int i = 1; i < N; i++) assert_true(out[i] == out[0]);
  return out[0];
}

/* --- tests --- */

static void one_device(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 1, 1);
  int x = hand_buffer(&f.plan, 0, REGION_ARENA), c = hand_buffer(&f.plan, 0, REGION_CONSTANT),
      y = hand_buffer(&f.plan, 0, REGION_ARENA);
  static const float ones[N] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  f.plan.buffers[c].data = ones;
  add_step(&f, 0, x, c, y);
  add_step(&f, 0, y, y, y);
  hand_input(&f.plan, x);
  hand_output(&f.plan, y);
  struct exec *e = load(&f);
  for (int i = 0; i < 3; i++) assert_true(run_once(e, (float)i) == 2.0f * ((float)i + 1));
  assert_int_equal(exec_high_water(e, 0), 2 * BYTES);
  exec_unload(e);
  finish(&f);
}

static _Thread_local int entered;

static void enter(void *self) {
  (void)self;
  entered++;
}

static void *run_elsewhere(void *arg) {
  for (int i = 0; i < 2; i++) assert_true(run_once(arg, 1) == 2);
  return entered == 1 ? arg : NULL;
}

/* The backend is told of a thread that has not run the plan before. */
static void another_thread(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 1, 1);
  f.backend.enter = enter;
  int x = hand_buffer(&f.plan, 0, REGION_ARENA), y = hand_buffer(&f.plan, 0, REGION_ARENA);
  add_step(&f, 0, x, x, y);
  hand_input(&f.plan, x);
  hand_output(&f.plan, y);
  struct exec *e = load(&f);
  assert_int_equal(entered, 1);
  assert_true(run_once(e, 1) == 2);
  assert_int_equal(entered, 1);
  for (int i = 0; i < 3; i++) { /* the system gives them all one number */
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, run_elsewhere, e), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, e);
  }
  exec_unload(e);
  finish(&f);
}

/* A ring: the value goes round all devices `rounds` times and doubles at each. */
static void ring(struct fixture *f, int ndevices, int nthreads, int rounds) {
  start(f, ndevices, nthreads);
  int values[MAX_DEVICES];
  for (int d = 0; d < ndevices; d++) values[d] = hand_buffer(&f->plan, d, REGION_ARENA);
  int x = hand_buffer(&f->plan, 0, REGION_ARENA);
  hand_input(&f->plan, x);
  int from = x;
  for (int i = 0; i < rounds * ndevices; i++) {
    int d = i % ndevices;
    if (i > 0 && ndevices > 1) hand_meet(&f->plan, (i - 1) % ndevices, d);
    add_step(f, d, from, from, values[d]);
    from = values[d];
  }
  hand_output(&f->plan, from);
}

static int runs = 8; /* of each plan, or as the first argument says */

static void devices_and_threads(void **state) {
  (void)state;
  for (int ndevices = 1; ndevices <= 9; ndevices++)
    for (int nthreads = 1; nthreads <= 4; nthreads++) {
      struct fixture f;
      ring(&f, ndevices, nthreads, 2);
      struct exec *e = load(&f);
      for (int i = 1; i <= runs; i++)
        assert_true(run_once(e, (float)i) == (float)i * (float)(1 << (2 * ndevices)));
      exec_unload(e);
      finish(&f);
    }
}

/* Every device waits for the one behind it in the list: on two threads each must pass over devices that cannot
 * go on. */
static void backwards(void **state) {
  (void)state;
  enum { DEVICES = 8 };
  struct fixture f;
  start(&f, DEVICES, 2);
  int x = hand_buffer(&f.plan, DEVICES - 1, REGION_ARENA), from = x;
  hand_input(&f.plan, x);
  for (int d = DEVICES - 1; d >= 0; d--) {
    int y = hand_buffer(&f.plan, d, REGION_ARENA);
    if (d < DEVICES - 1) hand_meet(&f.plan, d + 1, d);
    add_step(&f, d, from, from, y);
    from = y;
  }
  hand_output(&f.plan, from);
  struct exec *e = load(&f);
  for (int i = 1; i < 100; i++) assert_true(run_once(e, (float)i) == (float)i * 256);
  exec_unload(e);
  finish(&f);
}

static void copies_and_variables(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2, 2);
  int v = hand_buffer(&f.plan, 0, REGION_VARIABLE), w = hand_buffer(&f.plan, 1, REGION_VARIABLE);
  f.plan.buffers[v].name = "v";
  f.plan.buffers[w].name = "on another device";
  f.plan.buffers[w].identity = (struct variable_identity){.role = VARIABLE_REPLICA, .of = "v"};
  int x = hand_buffer(&f.plan, 0, REGION_ARENA);
  hand_input(&f.plan, x);
  add_step(&f, 0, v, x, v);
  hand_meet(&f.plan, 0, 1);
  struct operand *o = arena_new_array(f.arena, 2, struct operand);
  o[0].buffer = v, o[1].buffer = w;
  struct step *s = hand_step(&f.plan, 1, STEP_COPY);
  s->operands = o;
  s->noperands = 2;
  s->bytes = BYTES;
  hand_output(&f.plan, w);
  struct type t = vector_type();
  float start_value[N], back[N];
  for (int i = 0; i < N; i++) start_value[i] = 10;
  static const struct variable_identity itself = {.role = VARIABLE_ITSELF};
  struct stored_variable *primary = store_variable(f.store, "v", &t, &itself, 0, &f.diags);
  store_write(f.store, primary, start_value);
  struct exec *e = load(&f);
  struct stored_variable *copy = store_find(f.store, "on another device");
  store_read(f.store, copy, back);
  assert_true(back[3] == 10);
  assert_string_equal(copy->identity.of, "v");
  assert_true(run_once(e, 1) == 11);
  assert_true(run_once(e, 2) == 13);
  store_read(f.store, primary, back);
  assert_true(back[15] == 13);
  store_write(f.store, primary, start_value);
  store_broadcast(f.store);
  store_read(f.store, copy, back);
  assert_true(back[0] == 10);
  struct type other = type_scalar(DT_F32);
  assert_null(store_variable(f.store, "v", &other, &itself, 0, &f.diags));
  assert_int_equal(f.diags.nerrors, 1);
  exec_unload(e);
  finish(&f);
}

static struct stored_variable *made(struct fixture *f, const char *name, int device, int64_t rows,
                                    struct variable_identity identity) {
  struct type t = type_make(DT_F32, 1, &rows);
  struct stored_variable *v = store_variable(f->store, name, &t, &identity, device, &f->diags);
  assert_non_null(v);
  return v;
}

/* What the variables of the model are is not in the names of what they lie in, whatever order that was made in. */
static void variables_of_the_model(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2, 1);
  const struct variable_identity itself = {.role = VARIABLE_ITSELF};
  made(&f, "third", 1, 2, (struct variable_identity){VARIABLE_PART, "w", 2, NULL, false, false});
  made(&f, "first", 0, 4, (struct variable_identity){VARIABLE_PART, "w", 0, NULL, false, false});
  made(&f, "tower_1/z", 0, 1, itself);
  made(&f, "second", 1, 3, (struct variable_identity){VARIABLE_PART, "w", 1, NULL, false, false});
  made(&f, "v/part_1", 0, 1, itself);
  struct stored_variable *sums[2];
  sums[1] = made(&f, "a", 1, 1, (struct variable_identity){VARIABLE_OF_TOWER, "n", 1, "sum", false, false});
  sums[0] = made(&f, "b", 0, 1, (struct variable_identity){VARIABLE_OF_TOWER, "n", 0, "sum", false, false});
  struct stored_variable *replica =
      made(&f, "c", 1, 1, (struct variable_identity){.role = VARIABLE_REPLICA, .of = "v/part_1"});
  struct model_variable *all;
  assert_int_equal(store_model_variables(f.store, f.arena, &all), 4);
  assert_string_equal(all[0].name, "n");
  assert_int_equal(all[0].nparts, 2);
  assert_ptr_equal(all[0].parts[0], sums[0]);
  assert_string_equal(all[1].name, "tower_1/z");
  assert_string_equal(all[2].name, "v/part_1");
  assert_string_equal(all[3].name, "w");
  assert_int_equal(all[3].type.dim[0], 9);
  float in[9], out[9], value = 6;
  for (int i = 0; i < 9; i++) in[i] = (float)i;
  assert_true(model_variable_write(f.store, &all[3], in) && model_variable_read(f.store, &all[3], out));
  assert_memory_equal(out, in, sizeof in);
  assert_true(store_read(f.store, store_find(f.store, "second"), out));
  assert_true(out[0] == 4 && out[2] == 6);
  assert_true(model_variable_write(f.store, &all[0], &value) && store_read(f.store, sums[1], out));
  assert_true(out[0] == 3);
  assert_true(model_variable_write(f.store, &all[2], &value) && store_broadcast(f.store));
  assert_true(store_read(f.store, replica, out) && out[0] == 6);
  finish(&f);
}

/* A second, larger plan moves the arena; the first must follow. */
static void shared_arena(void **state) {
  (void)state;
  struct fixture f;
  ring(&f, 2, 2, 1);
  struct exec *small = load(&f);
  assert_true(run_once(small, 3) == 12);
  struct plan first = f.plan;
  f.plan.devices = arena_copy(f.arena, first.devices, 2 * sizeof *first.devices);
  f.plan.devices[0].bytes[REGION_ARENA] += 1 << 22;
  struct exec *large = load(&f);
  assert_true(run_once(large, 5) == 20);
  assert_true(run_once(small, 7) == 28);
  exec_unload(large);
  exec_unload(small);
  finish(&f);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Pieces of one device's steps, taken by so many threads at once. */
static void pieces_of_one_device(void **state) {
  (void)state;
  for (int nthreads = 1; nthreads <= PIECES; nthreads++) {
    struct fixture f;
    start(&f, 1, nthreads);
    int x = hand_buffer(&f.plan, 0, REGION_ARENA), y = hand_buffer(&f.plan, 0, REGION_ARENA);
    shared_step(&f, 0, x, y);
    for (int i = 0; i < 3; i++) shared_step(&f, 0, y, y);
    hand_input(&f.plan, x);
    hand_output(&f.plan, y);
    meeting.together = nthreads;
    struct exec *e = load(&f);
    for (int i = 1; i < 20; i++) assert_true(run_once(e, (float)i) == 16 * (float)i);
    exec_unload(e);
    finish(&f);
  }
}

/* A thread whose device waits takes pieces of the one that it waits for, one that has no device of both. */
static void pieces_while_waiting(void **state) {
  (void)state;
  for (int nthreads = 2; nthreads <= 3; nthreads++) {
    struct fixture f;
    start(&f, 2, nthreads);
    int x = hand_buffer(&f.plan, 0, REGION_ARENA), y = hand_buffer(&f.plan, 0, REGION_ARENA),
        z = hand_buffer(&f.plan, 1, REGION_ARENA);
    shared_step(&f, 0, x, y);
    hand_meet(&f.plan, 0, 1);
    shared_step(&f, 1, y, z);
    hand_meet(&f.plan, 1, 0);
    add_step(&f, 0, z, z, y);
    hand_input(&f.plan, x);
    hand_output(&f.plan, y);
    meeting.together = nthreads;
    struct exec *e = load(&f);
    for (int i = 1; i < 20; i++) assert_true(run_once(e, (float)i) == 8 * (float)i);
    exec_unload(e);
    finish(&f);
  }
}

/* Nobody waits for a piece that found no memory, and the next run is as any other. */
static void piece_without_memory(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 1, 2);
  int x = hand_buffer(&f.plan, 0, REGION_ARENA), y = hand_buffer(&f.plan, 0, REGION_ARENA);
  shared_step(&f, 0, x, y);
  hand_input(&f.plan, x);
  hand_output(&f.plan, y);
  meeting.together = 2;
  struct exec *e = load(&f);
  for (int i = 1; i < 6; i++) {
    meeting.fails = true;
    assert_false(exec_run(e));
    meeting.fails = false;
    assert_true(run_once(e, (float)i) == 2 * (float)i);
  }
  exec_unload(e);
  finish(&f);
}

/* A timed run counts what all threads do in pieces, those that wait in them too, and no thread longer than it lasts. */
static void all_threads_are_timed(void **state) {
  (void)state;
  for (int nthreads = 1; nthreads <= 3; nthreads++) {
    struct fixture f;
    start(&f, 1, nthreads);
    int x = hand_buffer(&f.plan, 0, REGION_ARENA), y = hand_buffer(&f.plan, 0, REGION_ARENA);
    shared_step(&f, 0, x, y);
    add_step(&f, 0, y, y, y);
    hand_input(&f.plan, x);
    hand_output(&f.plan, y);
    meeting.together = nthreads;
    meeting.lasts = 200000;
    struct exec *e = load(&f);
    for (int i = 1; i < 20; i++) {
      uint64_t busy[1];
      struct step_time steps[2] = {{0}}, *all[1] = {steps};
      struct exec_times t = {.busy = busy, .steps = all};
      meeting.took = 0;
      assert_true(exec_run_timed(e, &t));
      assert_true(steps[0].threads >= meeting.took && steps[0].clock >= meeting.lasts);
      assert_true(t.worked >= meeting.took && t.worked <= (uint64_t)nthreads * t.wall);
      assert_true(t.worked == steps[0].threads + steps[1].threads &&
                  busy[0] == steps[0].clock + steps[1].clock);
      assert_true(steps[1].threads == steps[1].clock);
    }
    meeting.lasts = 0;
    exec_unload(e);
    finish(&f);
  }
}

/* Prints figures; they are judged in bench/. */
static void cost(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 1, 1);
  for (int i = 0; i < 1000; i++) {
    struct step *s = hand_step(&f.plan, 0, STEP_KERNEL);
    s->kernel = &empty_kernel;
    s->sizes = vector_sizes;
  }
  struct exec *e = load(&f);
  double begin = seconds();
  for (int i = 0; i < 1000; i++) exec_run(e);
  printf("a step: %.1f ns\n", (seconds() - begin) * 1e9 / 1e6);
  exec_unload(e);
  finish(&f);

  start(&f, 2, 2);
  for (int i = 0; i < 1000; i++) hand_meet(&f.plan, i % 2, 1 - i % 2);
  e = load(&f);
  begin = seconds();
  for (int i = 0; i < 100; i++) exec_run(e);
  printf("a meeting of two devices: %.1f ns\n", (seconds() - begin) * 1e9 / 1e5);
  exec_unload(e);
  finish(&f);
}

int main(int argc, char **argv) {
  if (argc > 1) runs = atoi(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_device),
      cmocka_unit_test(devices_and_threads),
      cmocka_unit_test(backwards),
      cmocka_unit_test(copies_and_variables),
      cmocka_unit_test(variables_of_the_model),
      cmocka_unit_test(shared_arena),
      cmocka_unit_test(another_thread),
      cmocka_unit_test(pieces_of_one_device),
      cmocka_unit_test(pieces_while_waiting),
      cmocka_unit_test(piece_without_memory),
      cmocka_unit_test(all_threads_are_timed),
      cmocka_unit_test(cost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

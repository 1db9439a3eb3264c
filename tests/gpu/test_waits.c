/* SPDX-License-Identifier: Apache-2.0 */
/* Every wait is needed. Plans of small models on several simulated GPUs lose one wait at a time, then their queues
 * lose one of the waits for each other, then the backend loses one of those that it makes itself: around runs and for
 * copies. Each time some order that
 * streams and events allow then gives another result. The simulation draws the orders, and memory that was not
 * written reads as NaN; so that what an earlier step left is seen as well, each step has its own inputs. The draws go
 * on from try to try: TEST_SEED=S begins with others, TEST_TRIES=N gives up later. */
#include "frontend/frontend.h"
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "runtime/cuda/library.h"
#include "tests/support/expect.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 4, ROWS = 12, CLASSES = 4 };

static int passed, failed;

/* No test library: it would catch the signals by which the simulation notices accesses. */
__attribute__((noreturn, format(printf, 1, 2))) static void stop(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  printf("\n%d passed, 1 failed\n", passed);
  exit(1);
}

/* --- what is run --- */

static struct backend watched; /* backend_cuda, and what leaves out its waits */
static const struct backend *const backends_here[] = {&watched, &backend_interp, NULL};

struct scene {
  struct arena *arena;
  struct diags diags;
  struct graph *g;
  struct plan *plan;
  struct engines *engines;
  struct workers *workers;
  struct values inputs[STEPS], before;
  struct values right; /* outputs and variables after all steps */
  const char *name;
};

static void fill(struct values *v, const struct node *n, struct rng *r) {
  struct type t = type_specialize(&n->type, ROWS);
  struct tensor x = {t, arena_alloc(v->arena, (size_t)type_bytes(&t))};
  for (int64_t k = 0; k < type_count(&t); k++)
    if (t.dtype == DT_F32) /* small enough for gradients that are not zero; adam takes roots of some */
      ((float *)x.data)[k] = (float)rng_uniform(r, 0.1, 0.9);
    else
      ((int32_t *)x.data)[k] = rng_below(r, CLASSES);
  values_put(v, n->name, &t, x.data);
}

static void open_scene(struct scene *s, struct graph *(*make)(struct arena *a, struct diags *d),
                       const struct config *config, const char *devices) {
  *s = (struct scene){.arena = arena_create()};
  struct arena *a = s->arena;
  diags_init(&s->diags, a);
  s->name = arena_printf(a, "%d towers, %s on %s", config->towers, config->strategy, devices);
  s->g = make(a, &s->diags);
  if (!s->g) stop("%s", diags_text(&s->diags, false));
  s->before = values_make(a);
  for (int i = 0; i < STEPS; i++) s->inputs[i] = values_make(a);
  struct rng r = {3};
  for (uint32_t i = 0; i < s->g->count; i++) {
    const struct node *n = s->g->nodes[i];
    if (n->op == OP_variable) fill(&s->before, n, &r);
    for (int k = 0; n->op == OP_input && k < STEPS; k++) fill(&s->inputs[k], n, &r);
  }
  s->g->config = *config;
  s->g->config.batch = ROWS;
  if (!target_parse(a, devices, &s->g->config.target, &s->diags, LOC_NONE)) stop("%s", devices);
  s->plan = engine_plan(a, s->g, &s->diags);
  if (!s->plan) stop("%s: %s", s->name, diags_text(&s->diags, false));
  /* One worker issues everything: the same draws, the same order. */
  s->workers = workers_create(1, &s->diags);
  s->engines = engines_open(&s->plan->graph->config.target, backends_here, &s->diags);
  if (!s->engines) stop("%s", diags_text(&s->diags, false));
}

static void close_scene(struct scene *s) {
  workers_destroy(s->workers);
  engines_close(s->engines);
  arena_destroy(s->arena);
}

static const struct tensor *initial(const struct values *before, const struct stored_variable *v) {
  return values_get(before, v->identity.role == VARIABLE_REPLICA ? v->identity.of : v->name);
}

enum { MAX_MARKS = 256 };
static const void *marks[MAX_MARKS]; /* of the plan that was loaded last */
static bool asked[MAX_MARKS];        /* by the host, so far */
static int nmarks;

static bool abrupt; /* the results are not read: all ends while devices work */

/* All steps, and nothing that waits for the devices between them. */
static bool run_steps(struct scene *s, struct arena *a, const struct plan *p, struct exec *e,
                      struct store *store, struct values *out) {
  bool good = true;
  for (int i = 0; good && i < store_count(store); i++) {
    struct stored_variable *v = store_at(store, i);
    const struct tensor *t = initial(&s->before, v);
    if (!t) stop("no variable %s", v->name);
    good = store_write(store, v, t->data);
    v->filled = true;
  }
  for (int step = 0; good && step < STEPS; step++) {
    for (int i = 0; good && i < p->ninputs; i++)
      good = exec_write(e, i, values_get(&s->inputs[step], p->inputs[i].name)->data);
    good = good && exec_run(e);
  }
  for (int i = store_count(store) - 1; good && !abrupt && i >= 0; i--) {
    const struct stored_variable *v = store_at(store, i);
    void *data = arena_alloc(a, v->bytes);
    good = store_read(store, v, data);
    values_put(out, arena_printf(a, "variable %d", i), &v->type, data);
  }
  for (int i = 0; good && !abrupt && i < p->noutputs; i++) {
    const struct plan_value *v = &p->outputs[i];
    if (v->role == OUTPUT_UPDATE) continue;
    void *data = arena_alloc(a, (size_t)type_bytes(&v->type));
    good = exec_read(e, i, data);
    values_put(out, v->name, &v->type, data);
  }
  return good;
}

/* From memory that was not written to the results. False when a call failed. */
static bool play(struct scene *s, struct arena *a, const struct plan *p, struct values *out) {
  struct diags d;
  diags_init(&d, a);
  *out = values_make(a);
  nmarks = 0;
  struct store *store = store_create(s->engines);
  struct exec *e = exec_load(p, s->engines, store, s->workers, &d);
  bool good = e && run_steps(s, a, p, e, store, out);
  exec_unload(e);
  store_destroy(store);
  return good && engines_status(s->engines, &d);
}

static void reopen(struct scene *s) {
  engines_close(s->engines);
  s->engines = engines_open(&s->plan->graph->config.target, backends_here, &s->diags);
  if (!s->engines) stop("%s", diags_text(&s->diags, false));
}

/* What reads NaN must show. */
static void check_finite(const struct scene *s) {
  for (uint32_t i = 0; i < s->right.map.count; i++) {
    const struct tensor *t = s->right.map.entries[i].value;
    for (int64_t k = 0; t->type.dtype == DT_F32 && k < type_count(&t->type); k++)
      if (!isfinite(((const float *)t->data)[k]))
        stop("%s: %s is not finite", s->name, s->right.map.entries[i].key);
  }
}

static void expect_right(struct scene *s, int times) {
  s->right = values_make(s->arena);
  if (!play(s, s->arena, s->plan, &s->right)) stop("%s: it fails", s->name);
  check_finite(s);
  for (int i = 1; i < times; i++) {
    struct arena *a = arena_create();
    struct values out;
    const char *wrong = play(s, a, s->plan, &out) ? values_difference(a, &s->right, &out) : "it fails";
    if (wrong) stop("%s, with all waits: %s", s->name, wrong);
    arena_destroy(a);
  }
}

/* Whether the plan gives what it should, or fails. */
static bool goes_wrong(struct scene *s, const struct plan *p) {
  struct arena *a = arena_create();
  struct values out;
  bool good = play(s, a, p, &out), same = good && !values_difference(a, &s->right, &out);
  if (!good) reopen(s);
  arena_destroy(a);
  return !same;
}

static int max_tries(void) { return (int)number_from("TEST_TRIES", 200); }

/* --- waits of plans --- */

static struct plan *without(struct arena *a, const struct plan *p, int device, int step) {
  struct plan *q = arena_copy(a, p, sizeof *p);
  q->devices = arena_copy(a, p->devices, (size_t)p->ndevices * sizeof *p->devices);
  struct device_plan *d = &q->devices[device];
  d->steps = arena_copy(a, d->steps, (size_t)d->nsteps * sizeof *d->steps);
  memmove(&d->steps[step], &d->steps[step + 1], (size_t)(--d->nsteps - step) * sizeof *d->steps);
  return q;
}

static const char *describe(struct arena *a, const struct plan *p, int device, int step) {
  const struct device_plan *d = &p->devices[device];
  int next = step;
  while (next < d->nsteps && !d->steps[next].node) next++;
  return arena_printf(a, "wait for signal %d at step %d of %s, before %s", d->steps[step].signal, step,
                      p->graph->config.target.devices[device].text,
                      next < d->nsteps ? d->steps[next].node->name : "the end");
}

static int tries;

static void count(bool seen, int n) {
  tries += n;
  if (seen)
    passed++;
  else
    failed++;
}

static void each_wait(struct graph *(*make)(struct arena *a, struct diags *d), const struct config *config,
                      const char *devices) {
  struct scene s;
  open_scene(&s, make, config, devices);
  expect_right(&s, 3);
  for (int d = 0; d < s.plan->ndevices; d++)
    for (int i = 0; i < s.plan->devices[d].nsteps; i++) {
      if (s.plan->devices[d].steps[i].kind != STEP_WAIT) continue;
      const struct plan *p = without(s.arena, s.plan, d, i);
      int n = 1;
      while (n <= max_tries() && !goes_wrong(&s, p)) n++;
      count(n <= max_tries(), n);
      if (n > max_tries())
        printf("%s: nothing changes without the %s\n", s.name, describe(s.arena, s.plan, d, i));
    }
  close_scene(&s);
}

static struct graph *from_text(struct arena *a, const char *text, struct diags *d) {
  struct model *m = frontend_compile(a, source_make(a, "model.dsl", text, strlen(text)), NULL, d);
  return m ? m->train : NULL;
}

static struct graph *perceptron(struct arena *a, struct diags *d) {
  return from_text(a,
                   "use nn\nmodel perceptron {\n  input x : f32[B, 6]\n  input label : i32[B]\n"
                   "  h = nn.dense(x, units = 5, activation = tanh)\n  logits = nn.dense(h, units = 4)\n"
                   "  loss = softmax_cross_entropy(logits, label)\n  train mean(loss) with adam(rate = 0.1)\n"
                   "  metric accuracy = mean(correct(logits, label))\n}\n",
                   d);
}

static struct graph *rows(struct arena *a, struct diags *d) {
  return from_text(
      a,
      "use nn\nmodel rows {\n  input one : i32[B]\n  input label : i32[B]\n"
      "  h = nn.embedding(one, 4, 3)\n  logits = nn.dense(h, units = 4)\n"
      "  loss = softmax_cross_entropy(logits, label)\n  train mean(loss) with sgd(rate = 0.5)\n}\n",
      d);
}

static const struct layout_case {
  const char *devices;
  struct config config;
} layouts[] = {
    {"gpu:0-1", {.towers = 2, .strategy = "mirrored"}},
    {"gpu:0-1", {.towers = 4, .strategy = "mirrored", .packs = 2}},
    {"gpu:0-3", {.towers = 4, .strategy = "mirrored", .cross_device = "reduce_to_one"}},
    {"gpu:0-3", {.towers = 4, .strategy = "mirrored", .cross_device = "hierarchical_copy"}},
    {"gpu:0-2", {.towers = 3, .strategy = "mirrored", .cross_device = "ring", .packs = 3}},
    {"gpu:0-2", {.towers = 3, .strategy = "central_storage"}},
    {"cpu:0,gpu:0-1", {.towers = 2, .strategy = "central_storage", .parameter_device = "/cpu:0"}},
    {"gpu:0/0,gpu:0/1,gpu:1", {.towers = 3, .strategy = "mirrored"}},
    {"gpu:0/0,gpu:0/1", {.towers = 2, .strategy = "central_storage"}},
    {"gpu:0-1", {.towers = 2, .strategy = "round_robin"}},
    {"gpu:0-2", {.towers = 2, .strategy = "replicate"}},
};
enum { NLAYOUTS = sizeof layouts / sizeof *layouts };

static void waits_of_plans(void) {
  for (int i = 0; i < NLAYOUTS; i++) each_wait(perceptron, &layouts[i].config, layouts[i].devices);
  each_wait(rows, &layouts[0].config, layouts[0].devices);
  each_wait(rows, &layouts[5].config, layouts[5].devices);
  printf("%d waits of plans, %d tries\n", passed + failed, tries);
  if (passed < 100) stop("there should be more waits");
}

/* --- waits of the backend --- */

/* Its hooks that wait. */
enum hook { HOOK_NONE, HOOK_BEGIN, HOOK_END, HOOK_COPY, HOOK_FREE, HOOK_FOLLOW, HOOK_REACHED, HOOK_BETWEEN };
static const char *const hook_names[] = {"none", "begin",  "end",     "copy",
                                         "free", "follow", "reached", "copies of a run"};
static enum hook inside, mutant;
static int calls,
    left_out; /* in the mutant: so far; the one that is left out, or NONE, ALL, ODD, EVEN ones */
enum { NONE = -4, ALL, ODD, EVEN };

static CUresult (*wait_event)(CUstream, CUevent, unsigned), (*event_synchronize)(CUevent),
    (*stream_synchronize)(CUstream);

static bool peers = true;
static CUresult (*can_access_peer)(int *, CUdevice, CUdevice);

static CUresult maybe_can_access_peer(int *can, CUdevice from, CUdevice to) {
  CUresult r = can_access_peer(can, from, to);
  *can &= peers;
  return r;
}

static bool leave_out(void) {
  if (inside != mutant || !mutant) return false;
  bool odd = ++calls & 1;
  return calls == left_out || left_out == ALL || (odd && left_out == ODD) || (!odd && left_out == EVEN);
}

static CUresult maybe_wait_event(CUstream s, CUevent e, unsigned flags) {
  return leave_out() ? CUDA_SUCCESS : wait_event(s, e, flags);
}
static CUresult maybe_event_synchronize(CUevent e) {
  return leave_out() ? CUDA_SUCCESS : event_synchronize(e);
}
static CUresult maybe_stream_synchronize(CUstream s) {
  return leave_out() ? CUDA_SUCCESS : stream_synchronize(s);
}

static bool leave(bool good) {
  inside = HOOK_NONE;
  return good;
}

static bool begin(void *self, bool timed) {
  inside = HOOK_BEGIN;
  return leave(backend_cuda.begin(self, timed));
}

static bool end(void *self, bool wait) {
  inside = HOOK_END;
  return leave(backend_cuda.end(self, wait));
}

static bool copy(void *self, void *to, int to_device, const void *from, int from_device, size_t bytes) {
  inside = HOOK_COPY;
  return leave(backend_cuda.copy(self, to, to_device, from, from_device, bytes));
}

static void give_back(void *self, int device, void *data, size_t bytes) {
  inside = HOOK_FREE;
  backend_cuda.free(self, device, data, bytes);
  inside = HOOK_NONE;
}

static bool mark(void *self, struct arena *a, int device, enum queue queue, struct command *c, void **event,
                 struct diags *d) {
  bool good = backend_cuda.mark(self, a, device, queue, c, event, d);
  if (nmarks == MAX_MARKS) stop("too many marks");
  marks[nmarks++] = *event;
  return good;
}

static void run_nothing(void *const *args, const void *state) { (void)args, (void)state; }

static bool follow(void *self, struct arena *a, int device, enum queue queue, void *event, struct command *c,
                   struct diags *d) {
  inside = HOOK_FOLLOW;
  if (!leave(leave_out())) return backend_cuda.follow(self, a, device, queue, event, c, d);
  *c = (struct command){.kind = COMMAND_CALL, .step = c->step, .call = run_nothing};
  return true;
}

static bool reached(void *event) {
  int i = 0;
  while (i < nmarks && marks[i] != event) i++;
  if (i < nmarks) asked[i] = true;
  return (mutant == HOOK_REACHED && i + 1 == left_out) || backend_cuda.reached(event);
}

static const char *step_text(struct arena *a, const struct plan *p, int device, int step) {
  const struct device_plan *d = &p->devices[device];
  const char *text = p->graph->config.target.devices[device].text;
  if (step < 0) return arena_printf(a, "the beginning of %s", text);
  if (step == d->nsteps) return arena_printf(a, "the end of %s", text);
  return arena_printf(a, "step %d of %s, %s", step, text, d->steps[step].node->name);
}

/* Call number `which` of `follow`. All devices that wait in queues have two. */
static const char *describe_follow(struct arena *a, const struct plan *p, int which) {
  const struct target *t = &p->graph->config.target;
  enum manner *manners = arena_new_array(a, (size_t)p->ndevices, enum manner);
  for (int d = 0; d < p->ndevices; d++)
    manners[d] = strcmp(t->devices[d].name.kind, "gpu") == 0 ? MANNER_COPY_QUEUE : MANNER_AT_ONCE;
  const struct queues *q = queues_make(a, p, manners);
  for (int d = 0, n = 0; d < p->ndevices; d++)
    for (int i = 0; i <= p->devices[d].nsteps && manners[d] != MANNER_AT_ONCE; i++)
      for (const struct queue_wait *w = q->devices[d].waits[i]; w; w = w->next) {
        const struct queue_point *point = &q->points[w->point];
        if (++n == which)
          return arena_printf(a, "%s waits for %s", step_text(a, p, d, i),
                              step_text(a, p, point->device, point->after));
      }
  return "?";
}

/* A copy of a plan, which may wait between its parts. */
struct watched_copy {
  call_fn *call;
  const void *state;
};

static void run_copy(void *const *args, const void *state) {
  const struct watched_copy *w = state;
  inside = HOOK_BETWEEN;
  w->call(args, w->state);
  inside = HOOK_NONE;
}

static bool prepare_copy(void *self, struct arena *a, int to, int from, size_t bytes, struct command *c,
                         struct diags *d) {
  if (!backend_cuda.prepare_copy(self, a, to, from, bytes, c, d)) return false;
  if (to < 0 || from < 0) return true; /* on any thread */
  c->state = arena_copy(a, &(struct watched_copy){c->call, c->state}, sizeof(struct watched_copy));
  c->call = run_copy;
  return true;
}

/* The mutant without call number `which` of those that wait, or without some of them. */
static void leaves_out(struct scene *s, enum hook hook, int which) {
  int n = 1;
  for (; n <= max_tries(); n++) {
    mutant = hook;
    left_out = which;
    calls = 0;
    if (goes_wrong(s, s->plan)) break;
  }
  mutant = HOOK_NONE;
  count(n <= max_tries(), n);
  if (n > max_tries())
    printf("%s: nothing changes without wait %d of the hook `%s`%s%s\n", s->name, which, hook_names[hook],
           hook == HOOK_FOLLOW ? ": " : "",
           hook == HOOK_FOLLOW ? describe_follow(s->arena, s->plan, which) : "");
}

/* Of one queue for another, and of the host for a queue. */
static void each_queue_wait(const struct layout_case *l) {
  struct scene s;
  memset(asked, 0, sizeof asked);
  open_scene(&s, perceptron, &l->config, l->devices);
  expect_right(&s, 1);
  mutant = HOOK_FOLLOW;
  left_out = NONE;
  calls = 0;
  if (goes_wrong(&s, s.plan)) stop("%s: it fails", s.name);
  for (int i = 1, ncalls = calls; i <= ncalls; i++) leaves_out(&s, HOOK_FOLLOW, i);
  for (int i = 0; i < MAX_MARKS; i++)
    if (asked[i]) leaves_out(&s, HOOK_REACHED, i + 1);
  close_scene(&s);
}

/* Issued call by call, and recorded as graphs. */
static void waits_of_queues(void) {
  int before = passed + failed;
  tries = 0;
  for (int i = 0; i < 2 * NLAYOUTS; i++) {
    watched.record = i & 1 ? backend_cuda.record : NULL;
    each_queue_wait(&layouts[i / 2]);
  }
  printf("%d waits of queues, %d tries\n", passed + failed - before, tries);
  if (passed + failed - before < 600) stop("there should be more waits");
}

/* Waits of `begin` each by itself. Those of `end` and `copy` overlap: what the one leaves out, the next one or the
 * next run's beginning has as well. */
static void each_call(const struct layout_case *l) {
  struct scene s;
  open_scene(&s, perceptron, &l->config, l->devices);
  expect_right(&s, 1);
  mutant = HOOK_BEGIN;
  left_out = NONE;
  calls = 0;
  if (goes_wrong(&s, s.plan) || calls < STEPS) stop("%s: %d waits at the beginning of runs", s.name, calls);
  for (int i = 1, ncalls = calls; i <= ncalls; i++) leaves_out(&s, HOOK_BEGIN, i);
  leaves_out(&s, HOOK_END, ALL);
  leaves_out(&s, HOOK_COPY, ALL);
  close_scene(&s);
}

/* Memory is freed when nothing works on it any more. */
static void freed_in_the_middle(const struct layout_case *l) {
  struct scene s;
  abrupt = true;
  open_scene(&s, perceptron, &l->config, l->devices);
  if (goes_wrong(&s, s.plan)) stop("%s: it fails", s.name);
  leaves_out(&s, HOOK_FREE, ALL);
  close_scene(&s);
  abrupt = false;
}

/* Copies by way of the host: the leg to it waits for the target's turn, the leg from it for the first one. */
static void without_peers(const struct layout_case *l) {
  struct scene s;
  peers = false;
  open_scene(&s, perceptron, &l->config, l->devices);
  expect_right(&s, 3);
  leaves_out(&s, HOOK_BETWEEN, ODD);
  leaves_out(&s, HOOK_BETWEEN, EVEN);
  close_scene(&s);
  peers = true;
}

/* But for the last ones, each run is issued call by call: a recorded one is a single piece of work of the first
 * device. */
static void waits_of_the_backend(void) {
  int before = passed + failed;
  tries = 0;
  watched.record = NULL;
  each_call(&layouts[0]);
  each_call(&layouts[7]);
  freed_in_the_middle(&layouts[0]);
  for (int i = 0; i < 2; i++) {
    without_peers(&layouts[0]);
    without_peers(&layouts[4]);
    watched.record = backend_cuda.record;
  }
  printf("%d waits of the backend, %d tries\n", passed + failed - before, tries);
}

static bool watch_calls(void) {
  const char *why_not = cuda_load_driver();
  if (why_not) {
    fprintf(stderr, "%s\n", why_not);
    return false;
  }
  wait_event = cuda.cuStreamWaitEvent;
  cuda.cuStreamWaitEvent = maybe_wait_event;
  event_synchronize = cuda.cuEventSynchronize;
  cuda.cuEventSynchronize = maybe_event_synchronize;
  stream_synchronize = cuda.cuStreamSynchronize;
  cuda.cuStreamSynchronize = maybe_stream_synchronize;
  can_access_peer = cuda.cuDeviceCanAccessPeer;
  cuda.cuDeviceCanAccessPeer = maybe_can_access_peer;
  watched = backend_cuda;
  watched.begin = begin;
  watched.end = end;
  watched.copy = copy;
  watched.prepare_copy = prepare_copy;
  watched.free = give_back;
  watched.mark = mark;
  watched.follow = follow;
  watched.reached = reached;
  return true;
}

int main(int argc, char **argv) {
  char seed[32];
  if (argc != 2) return 2;
  snprintf(seed, sizeof seed, "%d", (int)number_from("TEST_SEED", 1));
  setenv("DGC_CUDA_PATH", argv[1], 1);
  setenv("DGC_SIMULATED_DEVICES", "4", 1);
  setenv("DGC_SIMULATED_SEED", seed, 1);
  if (!watch_calls()) return 1;
  waits_of_plans();
  waits_of_queues();
  waits_of_the_backend();
  printf("%d passed, %d failed\n", passed, failed);
  return failed > 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a training step. */
#include "base/integer.h"
#include "base/line.h"
#include "session/data.h"
#include "session/model.h"
#include "session/module.h"
#include "session/options.h"
#include "session/profile.h"
#include "session/rows.h"
#include "session/settle.h"
#include "session/state/data.h"
#include "session/state/running.h"
#include "session/state/settlement.h"
#include "session/state/tracing.h"
#include "session/trace.h"

#include "base/clock.h"
#include "ir/graph/graph.h"
#include "ir/strategies.h"
#include "runtime/devices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers for inputs without data ---- */

static void keep_within(struct dgc_bench_input *in, int64_t low, int64_t high) {
  in->low = in->low < low ? low : in->low > high ? high : in->low;
  in->high = in->high < low ? low : in->high > high ? high : in->high;
}

/* What the model can use; a byte where it does not say: how much of a table a step touches is what it costs. */
static void choose_range(const struct model *m, const char *name, enum dtype d, struct dgc_bench_input *in) {
  *in = (struct dgc_bench_input){.name = name, .low = 0, .high = 1, .why = "fractions"};
  if (dtype_is_float(d)) return;
  in->why = "truth values";
  if (d == DT_BOOL) return;
  in->high = 255;
  in->why = d == DT_U8 ? "all bytes" : "bytes, for the model says no range";
  for (int i = 0; m && i < m->ninputs; i++) {
    const struct model_input *x = &m->inputs[i];
    if (strcmp(x->name, name) != 0) continue;
    bool whole = x->low <= x->high;
    if (!whole && x->part_low > x->part_high) continue;
    in->low = whole ? x->low : x->part_low;
    in->high = whole ? x->high : x->part_high;
    in->why = whole ? "the model's range" : "the model's range of a part";
  }
  if (d == DT_U8) keep_within(in, 0, UINT8_MAX);
  if (d == DT_I32) keep_within(in, INT32_MIN, INT32_MAX);
}

static uint32_t next_number(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static int64_t next_integer(uint32_t *state, const struct dgc_bench_input *in) {
  uint64_t r = (uint64_t)next_number(state) << 24;
  r |= next_number(state);
  unsigned __int128 span = (unsigned __int128)((uint64_t)in->high - (uint64_t)in->low) + 1;
  return (int64_t)((uint64_t)in->low + (uint64_t)(span * r >> 48));
}

static void make_up(void *data, const struct type *t, const struct dgc_bench_input *in) {
  int64_t n = type_count(t);
  uint32_t state = 1;
  for (int64_t i = 0; i < n; i++) switch ((enum dtype)t->dtype) {
    case DT_F32: ((float *)data)[i] = (float)next_number(&state) * 0x1p-24f; break;
    case DT_F64: ((double *)data)[i] = (double)next_number(&state) * 0x1p-24; break;
    case DT_I32: ((int32_t *)data)[i] = (int32_t)next_integer(&state, in); break;
    case DT_I64: ((int64_t *)data)[i] = next_integer(&state, in); break;
    case DT_U8:
    case DT_BOOL: ((uint8_t *)data)[i] = (uint8_t)next_integer(&state, in); break;
    case DT_BF16:
    case DT_F16:
    case DT_COUNT: break;
    }
}

/* ---- a step ---- */

static size_t room_of(const struct plan_value *input) {
  return size_round_up((size_t)type_bytes(&input->type), CACHE_LINE);
}

/* Where a loader has its batches; *pinned is to be given back. */
static void make_room(struct dgc_session *s, const struct plan *p, void **inputs, void **pinned) {
  size_t all = 0;
  for (int i = 0; i < p->ninputs; i++) all += room_of(&p->inputs[i]);
  *pinned = engines_pinned_alloc(s->running->engines, all);
  char *next = *pinned ? *pinned : arena_alloc(s->call, all);
  for (int i = 0; i < p->ninputs; i++) {
    inputs[i] = next;
    next += room_of(&p->inputs[i]);
  }
}

/* One batch in host memory: the first of the data, or made up when none was given. */
static enum dgc_status first_batch(struct dgc_session *s, const struct plan *p, void *const *inputs,
                                   struct dgc_bench_input *about) {
  struct dataset *ds;
  for (int i = 0; i < p->ninputs; i++) {
    const struct type *t = &p->inputs[i].type;
    choose_range(s->model, p->inputs[i].name, (enum dtype)t->dtype, &about[i]);
    make_up(inputs[i], t, &about[i]);
  }
  if (!s->options.data.count && !rows_any(s, false)) return DGC_OK;
  enum dgc_status status = session_data(s, DATA_TRAIN, false, &ds);
  if (status) return status;
  struct loader_options lo = {.batch = session_batch(s), .epochs = 1};
  struct loader *loader = loader_create(s->call, ds, &lo, &s->diags);
  const struct batch *b;
  if (loader && loader_next(loader, &b, &s->diags) == LOADER_BATCH) {
    for (int i = 0; i < ds->ncolumns; i++) {
      int input = plan_input(p, ds->columns[i].name);
      const struct type *t = &b->columns[i].type;
      if (input < 0 || b->rows != lo.batch) continue;
      memcpy(inputs[input], b->columns[i].data, (size_t)type_bytes(t));
      about[input].given = true;
    }
    loader_release(loader, b);
  } else
    status = session_unread(s);
  loader_destroy(loader);
  dataset_close(ds);
  return status;
}

enum { MAX_TIMED = 1000000 };

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, ascending);
  return values[count / 2];
}

/* As in training, with a look at the losses: so the step is done when this returns. */
static enum dgc_status step(struct dgc_session *s, struct loaded *l, void *const *inputs,
                            struct exec_times *times) {
  if (session_stopped(s)) return session_fail(s, DGC_STOPPED, "the benchmark was stopped");
  for (int i = 0; i < l->plan->ninputs; i++)
    if (!exec_write(l->exec, i, inputs[i])) return session_device_failed(s);
  if (!(times ? exec_run_timed(l->exec, times) : exec_run(l->exec))) {
    exec_status(l->exec, &s->diags);
    return DGC_RUNTIME;
  }
  double loss;
  for (int i = 0; i < l->plan->noutputs; i++)
    if (l->plan->outputs[i].role == OUTPUT_LOSS && output_number(s, l, i, &loss)) return DGC_RUNTIME;
  return DGC_OK;
}

/* The median of so many steps, behind some that nobody looks at. */
static enum dgc_status time_steps(struct dgc_session *s, struct loaded *l, void *const *inputs,
                                  struct dgc_bench *out) {
  int count = out->steps;
  double *seconds = arena_new_array(s->call, (size_t)count, double);
  enum dgc_status status = DGC_OK;
  for (int i = 0; !status && i < 5 + count / 10; i++) status = step(s, l, inputs, NULL);
  for (int i = 0; !status && i < count; i++) {
    double begin = clock_seconds();
    status = step(s, l, inputs, NULL);
    seconds[i] = clock_seconds() - begin;
  }
  if (!status) out->step_seconds = median(seconds, count);
  return status;
}

/* As many, with a look into them; `sum`: by device, how long it has worked. */
static enum dgc_status look_into_steps(struct dgc_session *s, struct loaded *l, void *const *inputs,
                                       int count, uint64_t *sum, struct profile *x) {
  int ndevices = l->plan->ndevices;
  uint64_t *busy = arena_new_array(s->call, (size_t)ndevices, uint64_t);
  for (int i = 0; i < count; i++, x->runs++) {
    struct exec_times times = {.busy = busy, .steps = x->steps};
    enum dgc_status status = step(s, l, inputs, &times);
    if (status) return status;
    x->wall += times.wall;
    x->worked += times.worked;
    for (int d = 0; d < ndevices; d++) sum[d] += busy[d];
  }
  return DGC_OK;
}

/* Some more, for the file of the option trace. */
static enum dgc_status trace_steps(struct dgc_session *s, struct loaded *l, void *const *inputs, int count) {
  enum { MOST = 50 };
  enum dgc_status status = trace_open(s);
  for (int i = 0; !status && s->tracing->trace && i < count && i < MOST; i++) {
    for (int k = 0; !status && k < l->plan->ninputs; k++)
      if (!exec_write(l->exec, k, inputs[k])) status = session_device_failed(s);
    if (!status) status = session_run(s, l);
  }
  enum dgc_status traced = trace_close(s);
  return status ? status : traced;
}

static enum dgc_status measure(struct dgc_session *s, struct loaded *l, void *const *inputs,
                               struct dgc_bench *out, struct profile *x) {
  int ndevices = l->plan->ndevices;
  enum dgc_status status = s->options.profile ? profile_begin(s, l->plan, x) : DGC_OK;
  if (!status) status = time_steps(s, l, inputs, out);
  uint64_t *sum = arena_new_array(s->call, (size_t)ndevices, uint64_t);
  if (!status) status = look_into_steps(s, l, inputs, out->steps, sum, x);
  if (!status) status = trace_steps(s, l, inputs, out->steps);
  if (status) return status;
  const struct device *planned = l->plan->graph->config.target.devices;
  struct dgc_bench_device *devices = arena_new_array(s->text, (size_t)ndevices, struct dgc_bench_device);
  for (int d = 0; d < ndevices; d++) {
    devices[d] = (struct dgc_bench_device){.name = planned[d].text,
                                           .simulated = planned[d].simulated,
                                           .arena = l->plan->devices[d].bytes[REGION_ARENA],
                                           .high_water = exec_high_water(l->exec, d),
                                           .busy = (double)sum[d] / (double)x->wall};
  }
  out->outside = 1 - (double)x->worked / ((double)x->wall * out->threads);
  if (session_runs_modules(s)) out->outside = NAN;
  out->ndevices = ndevices;
  out->devices = devices;
  return DGC_OK;
}

/* Compiles, and measures what is asked of these devices. */
static enum dgc_status bench_here(struct dgc_session *s, struct dgc_bench *out, struct loaded **plan,
                                  struct profile *x) {
  struct loaded *l;
  arena_reset(s->text);
  enum dgc_status status = session_ready(s, ENTRY_TRAIN);
  double begin = clock_seconds();
  if (!status) status = session_plan(s, ENTRY_TRAIN, session_batch(s), &l);
  out->compile_seconds = clock_seconds() - begin;
  if (status) return status;
  void **inputs = arena_new_array(s->call, (size_t)l->plan->ninputs, void *);
  struct dgc_bench_input *about = arena_new_array(s->text, (size_t)l->plan->ninputs, struct dgc_bench_input);
  void *pinned;
  make_room(s, l->plan, inputs, &pinned);
  status = first_batch(s, l->plan, inputs, about);
  out->batch = l->batch;
  out->ninputs = l->plan->ninputs;
  out->inputs = about;
  out->towers = s->settlement->config.towers;
  out->threads = workers_count(s->running->workers);
  out->kernels = l->plan->nkernels;
  out->plan_steps = exec_commands(l->exec, &out->signals);
  for (int d = 0; d < l->plan->ndevices; d++)
    for (int i = 0; i < l->plan->devices[d].nsteps; i++)
      out->flops += (double)l->plan->devices[d].steps[i].flops;
  *plan = l;
  if (!status) status = measure(s, l, inputs, out, x);
  engines_pinned_free(s->running->engines, pinned);
  return status;
}

/* --- one thread of one device alone --- */

/* Another session, of the same source and options, but for those that spread the work. */
static struct dgc_session *create_alone(const struct dgc_session *s, int64_t batch) {
  struct dgc_session *one = session_create();
  struct options *o = &one->options;
  const struct device_name *first = &s->settlement->target.devices[0].name;
  *o = s->options;
  options_drop_strategy(o);
  o->cluster = "worker=1"; /* whatever the environment says */
  o->task = "worker:0";
  o->devices = arena_printf(one->arena, "%s:%d", first->kind, first->index);
  o->strategy = strategy_default(DEFAULT_FOR_ONE_DEVICE)->name;
  o->soft_placement = true; /* the model may name the others */
  o->batch = batch;
  o->batch_is = NULL;
  o->threads = 1;
  return one;
}

/* In a call of its own; what it says is of the call that asked. */
static enum dgc_status bench_alone(struct dgc_session *s, struct dgc_session *one, const struct plan *p,
                                   const struct profile *x, struct dgc_bench *out) {
  struct dgc_bench alone = {.steps = out->steps};
  struct profile y = {0};
  struct loaded *l;
  enum dgc_status status = session_load(one, s->source);
  if (!status) status = bench_here(one, &alone, &l, &y);
  if (status) return status;
  out->alone_seconds = alone.step_seconds;
  profile_places(s, p, x, l->plan, &y, out);
  return DGC_OK;
}

static enum dgc_status bench_alone_call(struct dgc_session *s, struct dgc_session *one, const struct plan *p,
                                        const struct profile *x, struct dgc_bench *out) {
  CALL(one, bench_alone(s, one, p, x, out));
}

static enum dgc_status compare_with_one(struct dgc_session *s, const struct plan *p, const struct profile *x,
                                        struct dgc_bench *out) {
  struct dgc_session *one = create_alone(s, out->batch);
  enum dgc_status status = bench_alone_call(s, one, p, x, out);
  if (status) session_fail(s, status, "one thread alone: %s", one->message);
  dgc_destroy(one);
  return status;
}

static enum dgc_status bench(struct dgc_session *s, struct dgc_bench *out) {
  struct loaded *l;
  struct profile x = {0};
  if (s->options.steps_given && (s->options.steps < 1 || s->options.steps > MAX_TIMED))
    return session_fail(s, DGC_USAGE, "steps: %lld steps cannot be timed; give 1 to %d",
                        (long long)s->options.steps, MAX_TIMED);
  *out = (struct dgc_bench){.steps = s->options.steps ? (int)s->options.steps : 100};
  enum dgc_status status = bench_here(s, out, &l, &x);
  if (status) return status;
  out->peak = machine_peak(out->threads);
  out->bf16_peak = machine_bf16_peak(out->threads);
  out->bandwidth = machine_bandwidth(out->threads);
  out->roof = isnan(out->outside) ? NAN : profile_roof(s, l->plan, out);
  if (!s->options.profile) return DGC_OK;
  profile_lines(s, l, &x, out);
  bool many = l->plan->ndevices > 1 || out->threads > 1;
  return many && !s->transport ? compare_with_one(s, l->plan, &x, out) : DGC_OK;
}

static enum dgc_status bench_call(struct dgc_session *s, struct dgc_bench *out) {
  if (!session_can_give(out)) return session_wrong_size(s);
  struct dgc_bench whole;
  enum dgc_status status = bench(s, &whole);
  if (!status) session_give(out, &whole, sizeof whole);
  return status;
}

enum dgc_status dgc_benchmark(struct dgc_session *s, struct dgc_bench *out) { CALL(s, bench_call(s, out)); }

/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a step goes: by kernel and line of the model, against what the machine could do; and, where several
 * devices are not as many times as fast as one, on which lines the time is lost. */
#include "session/profile.h"

#include "session/state/running.h"

#include "base/map.h"
#include "ir/graph/text.h"
#include "ir/ops/op.h"
#include "ir/plan/plan.h"
#include "runtime/engines.h"
#include "runtime/exec.h"

#include <stdlib.h>
#include <string.h>

enum dgc_status profile_begin(struct dgc_session *s, const struct plan *p, struct profile *out) {
  *out = (struct profile){.steps = arena_new_array(s->call, (size_t)p->ndevices, struct step_time *)};
  for (int d = 0; d < p->ndevices; d++) {
    size_t room = (size_t)plan_all_steps(p, d) + 1; /* for what comes behind them, too */
    out->steps[d] = arena_new_array(s->call, room, struct step_time);
    if (engines_on_host(s->running->engines, d) || !engines_here(s->running->engines, d)) continue;
    session_fail(s, DGC_USAGE, "profile: the steps of %s run behind the host and cannot be timed one by one",
                 p->graph->config.target.devices[d].text);
    diag_help(&s->diags, LOC_NONE, "--devices cpu:0 shows where the time goes on a CPU");
    return DGC_USAGE;
  }
  return DGC_OK;
}

/* --- by kernel and line --- */

/* Whether a step works on numbers: the others are passed by the executor. */
static bool works(const struct step *s) {
  switch (s->kind) {
  case STEP_KERNEL:
  case STEP_LEAF:
  case STEP_SCAN:
  case STEP_COPY:
  case STEP_ALL_REDUCE:
  case STEP_SEND:
  case STEP_RECEIVE:
  case STEP_MODULE: return true;
  case STEP_SIGNAL:
  case STEP_WAIT:
  case STEP_SENT: return false;
  }
  return false;
}

/* A line while it is added up, in the list of all. */
struct profiled {
  struct dgc_bench_line line;
  double threads;              /* dgc_bench.line_threads */
  const struct profiled *loop; /* that it is in; NULL: none */
  struct profiled *next;
};

struct profiling {
  struct dgc_session *s;
  const struct profile *x;
  const struct exec *exec;
  struct dgc_bench *out;
  struct dgc_bench_line *lines; /* of out */
  double *line_threads;
  struct map known;
  struct profiled *all;
  int count;
  int device, numbered; /* of its steps, see plan_all_steps */
};

/* The same for all that does the same for the same line: towers and replicas, and arrays of one type. */
static const char *line_key(struct arena *a, const struct step *s, const char *how, const char *where,
                            const struct profiled *loop) {
  struct str key = str_make(a);
  str_printf(&key, "%p %s %p %s ", (const void *)loop, how, (const void *)s->kernel, where ? where : "");
  type_print(&key, &s->node->type);
  return key.data;
}

/* `number` is that of plan_all_steps. */
static struct profiled *find_line(struct profiling *p, const struct step *step, int number,
                                  const struct profiled *loop) {
  const char *library = exec_library(p->exec, p->device, number), *how = step_word(step);
  if (library) how = arena_printf(p->s->text, "%s by %s", how, library);
  const char *where = node_origin(p->s->text, step->node),
             *key = line_key(p->s->call, step, how, where, loop);
  struct profiled *found = map_get(&p->known, key);
  if (found) return found;
  found = arena_new(p->s->call, struct profiled);
  *found = (struct profiled){.loop = loop, .next = p->all};
  found->line = (struct dgc_bench_line){.what = arena_strdup(p->s->text, step->node->name),
                                        .how = how,
                                        .where = where,
                                        .depth = loop ? loop->line.depth + 1 : 0};
  map_put_owned(&p->known, key, found);
  p->count++;
  return p->all = found;
}

/* What all threads reach of it at most: bfloat16 is multiplied faster where there are units for it. */
static double peak_of(const struct dgc_session *s, const struct step *step, const struct dgc_bench *out) {
  const struct node *n = step->node;
  bool bf16 = step->kind == STEP_LEAF &&
              (node_attr(n, ATTR_precision) || (n->ninputs > 0 && n->inputs[0]->type.dtype == DT_BF16));
  return bf16 && out->bf16_peak > 0 && engines_bf16_units(s->running->engines) ? out->bf16_peak : out->peak;
}

/* Seconds of one run. */
static double seconds(const struct profile *x, uint64_t ns) { return (double)ns * 1e-9 / x->runs; }

/* Seconds of one thread for a step that is done so many times, at the peak and the bandwidth. */
static double roof_of(const struct dgc_session *s, const struct step *step, double times,
                      const struct dgc_bench *out) {
  double compute = (double)step->flops * times * out->threads / peak_of(s, step, out),
         move = (double)step->traffic * times * out->threads / out->bandwidth;
  return compute > move ? compute : move;
}

static double roof_of_steps(const struct dgc_session *s, const struct device_plan *dp, int device,
                            double times, const struct dgc_bench *out) {
  double sum = 0;
  for (int i = 0; i < dp->nsteps; i++) {
    const struct step *step = &dp->steps[i];
    if (!works(step)) continue;
    sum += step->kind == STEP_SCAN ? roof_of_steps(s, &step->loop->body->devices[device], device,
                                                   times * (double)step->loop->length, out)
                                   : roof_of(s, step, times, out);
  }
  return sum;
}

double profile_roof(const struct dgc_session *s, const struct plan *p, const struct dgc_bench *out) {
  double sum = 0;
  for (int d = 0; d < p->ndevices; d++)
    if (engines_here(s->running->engines, d)) sum += roof_of_steps(s, &p->devices[d], d, 1, out);
  return sum / out->threads;
}

/* The steps of a plan, or of a loop's body, which has them `times` times in a step; numbered from `first`. */
static void add_lines(struct profiling *p, const struct device_plan *dp, int first, int64_t times,
                      const struct profiled *loop) {
  for (int i = 0; i < dp->nsteps; i++) {
    const struct step *step = &dp->steps[i];
    if (!works(step)) continue;
    struct profiled *found = find_line(p, step, first + i, loop);
    struct dgc_bench_line *line = &found->line;
    line->count += (int)times;
    const struct step_time *took = &p->x->steps[p->device][first + i];
    line->seconds += seconds(p->x, took->clock);
    found->threads += seconds(p->x, took->threads);
    line->flops += (double)(step->flops * times);
    line->traffic += (double)(step->traffic * times);
    line->roof += roof_of(p->s, step, (double)times, p->out);
    if (step->kind != STEP_SCAN) continue;
    const struct device_plan *body = &step->loop->body->devices[p->device];
    int inner = p->numbered;
    p->numbered += body->nsteps;
    add_lines(p, body, inner, times * step->loop->length, found);
  }
}

static int slowest_first(const void *a, const void *b) {
  const struct profiled *const *x = a, *const *y = b;
  if ((*x)->line.seconds != (*y)->line.seconds) return (*x)->line.seconds < (*y)->line.seconds ? 1 : -1;
  return strcmp((*x)->line.what, (*y)->line.what);
}

/* What is in the loop, each with what is in it. */
static void put_lines(struct profiling *p, const struct profiled *loop) {
  const struct profiled **found = arena_new_array(p->s->call, (size_t)p->count, const struct profiled *);
  int count = 0;
  for (const struct profiled *x = p->all; x; x = x->next)
    if (x->loop == loop) found[count++] = x;
  if (count) qsort(found, (size_t)count, sizeof *found, slowest_first);
  for (int i = 0; i < count; i++) {
    p->line_threads[p->out->nlines] = found[i]->threads;
    p->lines[p->out->nlines++] = found[i]->line;
    put_lines(p, found[i]);
  }
}

void profile_lines(struct dgc_session *s, const struct loaded *l, const struct profile *x,
                   struct dgc_bench *out) {
  const struct plan *p = l->plan;
  struct profiling all = {.s = s, .x = x, .exec = l->exec, .out = out, .known = map_make(s->call)};
  for (int d = 0; d < p->ndevices; d++) {
    if (!engines_here(s->running->engines, d)) continue;
    all.device = d;
    all.numbered = p->devices[d].nsteps;
    add_lines(&all, &p->devices[d], 0, 1, NULL);
  }
  all.lines = arena_new_array(s->text, (size_t)all.count + 1, struct dgc_bench_line);
  all.line_threads = arena_new_array(s->text, (size_t)all.count + 1, double);
  out->nlines = 0;
  out->lines = all.lines;
  out->line_threads = all.line_threads;
  put_lines(&all, NULL);
}

/* --- by place --- */

/* The line of the model alone, without the calls that lead from it into the library. */
static const char *place_of(struct arena *a, const struct step *s) {
  if (s->kind != STEP_KERNEL && s->kind != STEP_LEAF && s->kind != STEP_SCAN) return "copies";
  const char *origin = node_origin(a, s->node);
  return origin ? arena_strndup(a, origin, strcspn(origin, " ")) : NULL;
}

struct place_table {
  struct arena *arena;
  struct dgc_bench_place *all;
  int count;
  struct map known;
};

static struct dgc_bench_place *find_place(struct place_table *x, const char *where) {
  struct dgc_bench_place *place = map_get(&x->known, where ? where : "");
  if (place) return place;
  place = &x->all[x->count++];
  *place = (struct dgc_bench_place){.where = where};
  map_put(&x->known, where ? where : "", place);
  return place;
}

/* Adds what the steps of a profile took, on so many threads, and what was outside of them. While one device does a
 * step its threads are at it or wait for those that are; of several each is at its own. */
static void add_places(struct place_table *out, const struct plan *p, const struct profile *x, int threads,
                       bool alone) {
  double inside = 0;
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i < p->devices[d].nsteps; i++) {
      if (!works(&p->devices[d].steps[i])) continue;
      const struct step_time *took = &x->steps[d][i];
      double share = p->ndevices == 1 ? seconds(x, took->clock) : seconds(x, took->threads) / threads;
      struct dgc_bench_place *place = find_place(out, place_of(out->arena, &p->devices[d].steps[i]));
      *(alone ? &place->alone : &place->seconds) += share;
      inside += share;
    }
  struct dgc_bench_place *outside =
      find_place(out, "outside kernels: waiting for each other, and the executor");
  *(alone ? &outside->alone : &outside->seconds) += seconds(x, x->wall) - inside;
}

static double excess(const struct dgc_bench_place *x, int threads) { return x->seconds - x->alone / threads; }

void profile_places(struct dgc_session *s, const struct plan *p, const struct profile *x,
                    const struct plan *alone_plan, const struct profile *alone, struct dgc_bench *out) {
  struct place_table places = {.arena = s->text, .known = map_make(s->call)};
  int room = 1;
  for (int d = 0; d < p->ndevices; d++) room += p->devices[d].nsteps;
  for (int d = 0; d < alone_plan->ndevices; d++) room += alone_plan->devices[d].nsteps;
  places.all = arena_new_array(s->text, (size_t)room, struct dgc_bench_place);
  add_places(&places, p, x, out->threads, false);
  add_places(&places, alone_plan, alone, 1, true);
  for (int i = 1; i < places.count;
       i++) /* few: by insertion, those that cost alike in the order of the plan */
    for (int k = i; k > 0 && excess(&places.all[k], out->threads) > excess(&places.all[k - 1], out->threads);
         k--) {
      struct dgc_bench_place swap = places.all[k];
      places.all[k] = places.all[k - 1];
      places.all[k - 1] = swap;
    }
  out->nplaces = places.count;
  out->places = places.all;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a step goes: by kernel and line of the model, against what the machine could do; and, where several
 * devices are not as many times as fast as one, on which lines the time is lost. */
#include "session/profile.h"

#include "base/map.h"
#include "ir/graph/text.h"
#include "ir/ops/op.h"
#include "ir/plan/plan.h"
#include "runtime/engines.h"

#include <stdlib.h>
#include <string.h>

enum dgc_status profile_begin(struct dgc_session *s, const struct plan *p, struct profile *out) {
  *out = (struct profile){.steps = arena_new_array(s->call, (size_t)p->ndevices, uint64_t *)};
  for (int d = 0; d < p->ndevices; d++) {
    out->steps[d] =
        arena_new_array(s->call, (size_t)p->devices[d].nsteps + 1, uint64_t); /* what comes behind them */
    if (engines_on_host(s->engines, d) || !engines_here(s->engines, d)) continue;
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
  case STEP_LOOP:
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

/* The same for all that does the same for the same line: towers and replicas, and arrays of one type. */
static const char *line_key(struct arena *a, const struct step *s, const char *where) {
  struct str key = str_make(a);
  str_printf(&key, "%s %p %s ", step_word(s), (const void *)s->kernel, where ? where : "");
  type_print(&key, &s->node->type);
  return key.data;
}

static int slowest_first(const void *a, const void *b) {
  const struct dgc_bench_line *x = a, *y = b;
  if (x->seconds != y->seconds) return x->seconds < y->seconds ? 1 : -1;
  return strcmp(x->what, y->what);
}

/* What all threads reach of it at most: bfloat16 is multiplied faster where there are units for it. */
static double peak_of(const struct dgc_session *s, const struct step *step, const struct dgc_bench *out) {
  const struct node *n = step->node;
  bool bf16 = step->kind == STEP_LEAF &&
              (node_attr(n, ATTR_precision) || (n->ninputs > 0 && n->inputs[0]->type.dtype == DT_BF16));
  return bf16 && out->bf16_peak > 0 && engines_bf16_units(s->engines) ? out->bf16_peak : out->peak;
}

/* Seconds of one run. */
static double seconds(const struct profile *x, uint64_t ns) { return (double)ns * 1e-9 / x->runs; }

void profile_lines(struct dgc_session *s, const struct plan *p, const struct profile *x,
                   struct dgc_bench *out) {
  struct map known = map_make(s->call);
  int room = 0;
  for (int d = 0; d < p->ndevices; d++) room += p->devices[d].nsteps;
  struct dgc_bench_line *lines = arena_new_array(s->text, (size_t)room, struct dgc_bench_line);
  double bandwidth = out->bandwidth / out->threads;
  for (int d = 0; d < p->ndevices; d++) {
    for (int i = 0; i < p->devices[d].nsteps && engines_here(s->engines, d); i++) {
      const struct step *step = &p->devices[d].steps[i];
      if (!works(step)) continue;
      const char *where = node_origin(s->text, step->node), *key = line_key(s->call, step, where);
      struct dgc_bench_line *line = map_get(&known, key);
      if (!line) {
        line = &lines[out->nlines++];
        *line = (struct dgc_bench_line){
            .what = arena_strdup(s->text, step->node->name), .how = step_word(step), .where = where};
        map_put_owned(&known, key, line);
      }
      double peak = peak_of(s, step, out) / out->threads, compute = (double)step->flops / peak,
             move = (double)step->traffic / bandwidth;
      line->count++;
      line->seconds += seconds(x, x->steps[d][i]);
      line->flops += (double)step->flops;
      line->traffic += (double)step->traffic;
      line->roof += compute > move ? compute : move;
    }
  }
  qsort(lines, (size_t)out->nlines, sizeof *lines, slowest_first);
  out->lines = lines;
}

/* --- by place --- */

/* The line of the model alone, without the calls that lead from it into the library. */
static const char *place_of(struct arena *a, const struct step *s) {
  if (s->kind != STEP_KERNEL && s->kind != STEP_LEAF && s->kind != STEP_LOOP) return "copies";
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

/* Adds what the steps of a profile took, on so many threads, and what was outside of them. */
static void add_places(struct place_table *out, const struct plan *p, const struct profile *x, int threads,
                       bool alone) {
  double inside = 0;
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i < p->devices[d].nsteps; i++) {
      if (!works(&p->devices[d].steps[i])) continue;
      double share = seconds(x, x->steps[d][i]) / threads;
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

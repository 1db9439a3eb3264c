/* SPDX-License-Identifier: Apache-2.0 */
/* A nest of loops in parts: along the outermost loop that is long enough, the vector loop in whole rounds. */
#include "runtime/cut.h"

#include <string.h>

/* Iterations of the vector loop that stay together: a round of a column sum, four chunks of lanes. And how many sizes a
 * kernel has at most, for which there is room on the stack. */
enum { ROUND = 4 * KERNEL_LANES, MOST_SIZES = 512 };

/* One loop in so many parts, each of whole units of so many iterations. */
struct parts {
  int loop, count;
  int64_t units, unit;
};

/* By measurements: an instruction for 16 lanes is half a cycle, and caches are read at 30 GB/s. Elements that are not
 * contiguous are gathered. */
static int64_t cost_of(const struct kernel *k, const int64_t *sizes, int64_t traffic) {
  double elements = 1, each = 0.01 * (k->body.count + 1);
  for (int l = 0; l < k->rank; l++) elements *= (double)sizes[l];
  for (int i = 0; i < k->nargs; i++)
    if (k->args[i].vector == STRIDE_ANY) each += 0.5;
  double computing = elements * each, moving = (double)traffic * 0.03;
  return (int64_t)(computing > moving ? computing : moving);
}

static int64_t units_of(const struct kernel *k, const int64_t *sizes, int loop) {
  return loop == k->vector ? (sizes[loop] + ROUND - 1) / ROUND : sizes[loop];
}

/* Along the first loop that is kept and has enough for all pieces, else the one that has the most; `most` parts at
 * most. */
static struct parts parts_of(const struct kernel *k, const int64_t *sizes, int64_t most) {
  int kept = k->rank - (k->kind == KERNEL_REDUCE ? k->nreduce : 0), best = 0;
  if (kept == 0 || kernel_nlaunch(k) > MOST_SIZES) return (struct parts){.count = 1};
  for (int l = 0; l < kept && units_of(k, sizes, best) < MOST_PIECES; l++)
    if (units_of(k, sizes, l) > units_of(k, sizes, best)) best = l;
  int64_t units = units_of(k, sizes, best);
  if (most > units) most = units > 0 ? units : 1;
  return (struct parts){best, (int)most, units, best == k->vector ? ROUND : 1};
}

/* Makes a launch one of the parts [first, last). `moved` may be `args`. */
static void take_parts(const struct kernel *k, const struct parts *p, int first, int last, void *const *args,
                       void **moved, int64_t *sizes) {
  int64_t begin = piece_begin(p->units, p->count, first) * p->unit;
  int64_t end = piece_begin(p->units, p->count, last) * p->unit;
  if (end > sizes[p->loop]) end = sizes[p->loop];
  for (int i = 0; i < k->nargs; i++) {
    int64_t stride = sizes[k->rank + i * k->rank + p->loop] * dtype_size((enum dtype)k->args[i].dtype);
    moved[i] = (char *)args[i] + begin * stride;
  }
  sizes[p->loop] = end - begin;
  sizes[kernel_nsizes(k) + p->loop] += begin;
}

struct cut {
  kernel_fn *fn;
  const struct kernel *kernel;
  const int64_t *sizes;
  struct parts parts;
};

KERNEL_CALLER static void run_cut(void *const *args, const void *state, int stage, int first, int last) {
  const struct cut *c = state;
  int64_t sizes[MOST_SIZES];
  void *moved[MAX_KERNEL_ARGS];
  (void)stage;
  memcpy(sizes, c->sizes, (size_t)kernel_nlaunch(c->kernel) * sizeof *sizes);
  take_parts(c->kernel, &c->parts, first, last, args, moved, sizes);
  c->fn(moved, sizes);
}

const struct pieces *cut_kernel(struct arena *a, const struct step *s, kernel_fn *fn) {
  int64_t cost = cost_of(s->kernel, s->sizes, s->traffic);
  struct parts parts = parts_of(s->kernel, s->sizes, pieces_for(cost, MOST_PIECES));
  if (parts.count == 1) return NULL;
  struct cut *c = arena_new(a, struct cut);
  *c = (struct cut){fn, s->kernel, s->sizes, parts};
  struct pieces *p = arena_new(a, struct pieces);
  *p = (struct pieces){.run = run_cut, .state = c, .nstages = 1, .count = {parts.count}, .cost = cost};
  return p;
}

/* Where segments are fewer than pieces, each is in parts itself. One part of all segments comes after the other. */
struct cut_segments {
  struct split_launch launch;
  kernel_fn *fn[2];
  struct parts segment, join;
  int count;         /* of pieces of the first stage, each of successive parts of segments */
  int64_t *sizes[2]; /* by piece, written for each call */
};

KERNEL_CALLER static void run_segments(void *const *args, const void *state, int stage, int first, int end) {
  const struct cut_segments *c = state;
  const struct kernel *k = stage ? &c->launch.split->join : &c->launch.split->segment;
  int64_t *sizes = c->sizes[stage] + first * kernel_nlaunch(k);
  void *moved[MAX_KERNEL_ARGS];
  if (stage == 0) {
    int segments = c->launch.segments.count;
    int64_t all = (int64_t)segments * c->segment.count, behind = piece_begin(all, c->count, end);
    for (int64_t i = piece_begin(all, c->count, first); i < behind; i++) {
      int part = (int)(i / segments);
      split_segment(&c->launch, (int)(i % segments), args, moved, sizes);
      if (c->segment.count > 1) take_parts(k, &c->segment, part, part + 1, moved, moved, sizes);
      c->fn[0](moved, sizes);
    }
  } else {
    memcpy(sizes, c->launch.join_sizes, (size_t)kernel_nlaunch(k) * sizeof *sizes);
    split_join(&c->launch, args, moved);
    if (c->join.count > 1) take_parts(k, &c->join, first, end, moved, moved, sizes);
    c->fn[1](moved, sizes);
  }
}

const struct pieces *cut_segments(struct arena *a, const struct step *s, const struct split *split,
                                  kernel_fn *const fn[2]) {
  struct cut_segments *c = arena_new(a, struct cut_segments);
  int segments = s->segments.count,
      wanted = pieces_for(cost_of(s->kernel, s->sizes, s->traffic), MOST_PIECES);
  *c = (struct cut_segments){.launch = split_launch(a, s->kernel, split, s->sizes, s->segments),
                             .fn = {fn[0], fn[1]},
                             .segment =
                                 parts_of(&split->segment, s->sizes, (wanted + segments - 1) / segments)};
  int64_t all = (int64_t)segments * c->segment.count;
  c->count = (int)(wanted < all ? wanted : all);
  int64_t joining = cost_of(&split->join, c->launch.join_sizes, split->segment.nsums * c->launch.sum_bytes);
  c->join = parts_of(&split->join, c->launch.join_sizes, pieces_for(joining, MOST_PIECES));
  c->sizes[0] = arena_new_array(a, (size_t)(c->count * kernel_nlaunch(&split->segment)), int64_t);
  c->sizes[1] = arena_new_array(a, (size_t)(c->join.count * kernel_nlaunch(&split->join)), int64_t);
  struct pieces *p = arena_new(a, struct pieces);
  *p = (struct pieces){.run = run_segments,
                       .state = c,
                       .nstages = 2,
                       .count = {c->count, c->join.count},
                       .cost = cost_of(s->kernel, s->sizes, s->traffic)};
  return p;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel's nest along its outermost loop that is long enough, the vector loop in whole rounds. */
#include "runtime/cut.h"

#include <string.h>

/* Iterations of the vector loop that stay together: a round of a column sum, four chunks of lanes. And how many sizes a
 * kernel has at most, for which there is room on the stack. */
enum { ROUND = 4 * KERNEL_LANES, MOST_SIZES = 512 };

struct cut {
  kernel_fn *fn;
  const struct kernel *kernel;
  const int64_t *sizes;
  int loop;
  int64_t units, unit; /* of so many iterations */
  int count;
};

KERNEL_CALLER static void run_cut(void *const *args, const void *state, int stage, int first, int last) {
  const struct cut *c = state;
  const struct kernel *k = c->kernel;
  int64_t sizes[MOST_SIZES];
  void *moved[MAX_KERNEL_ARGS];
  (void)stage;
  int64_t begin = piece_begin(c->units, c->count, first) * c->unit;
  int64_t end = piece_begin(c->units, c->count, last) * c->unit;
  if (end > c->sizes[c->loop]) end = c->sizes[c->loop];
  memcpy(sizes, c->sizes, (size_t)kernel_nlaunch(k) * sizeof *sizes);
  sizes[c->loop] = end - begin;
  sizes[kernel_nsizes(k) + c->loop] += begin;
  for (int i = 0; i < k->nargs; i++) {
    int64_t stride = c->sizes[k->rank + i * k->rank + c->loop] * dtype_size((enum dtype)k->args[i].dtype);
    moved[i] = (char *)args[i] + begin * stride;
  }
  c->fn(moved, sizes);
}

/* By measurements: an instruction for 16 lanes is half a cycle, and caches are read at 30 GB/s. Elements that are not
 * contiguous are gathered. */
static int64_t cost_of(const struct step *s) {
  const struct kernel *k = s->kernel;
  double elements = 1, each = 0.01 * (k->body.count + 1);
  for (int l = 0; l < k->rank; l++) elements *= (double)s->sizes[l];
  for (int i = 0; i < k->nargs; i++)
    if (k->args[i].vector == STRIDE_ANY) each += 0.5;
  double computing = elements * each, moving = (double)s->traffic * 0.03;
  return (int64_t)(computing > moving ? computing : moving);
}

static int64_t units_of(const struct step *s, int loop) {
  return loop == s->kernel->vector ? (s->sizes[loop] + ROUND - 1) / ROUND : s->sizes[loop];
}

/* The first that has enough for all pieces, else the one that has the most. */
static int choose_loop(const struct step *s, int kept) {
  int best = 0;
  for (int l = 0; l < kept; l++) {
    if (units_of(s, l) >= MOST_PIECES) return l;
    if (units_of(s, l) > units_of(s, best)) best = l;
  }
  return best;
}

struct cut_segments {
  struct split_launch launch;
  kernel_fn *fn[2];
  int count;      /* of pieces, each of successive segments */
  int64_t *sizes; /* by piece, written for each segment */
};

KERNEL_CALLER static void run_segments(void *const *args, const void *state, int stage, int first, int end) {
  const struct cut_segments *c = state;
  void *moved[MAX_KERNEL_ARGS];
  if (stage == 0) {
    int segments = c->launch.segments.count, behind = (int)piece_begin(segments, c->count, end);
    int64_t *sizes = c->sizes + first * kernel_nlaunch(&c->launch.split->segment);
    for (int i = (int)piece_begin(segments, c->count, first); i < behind; i++) {
      split_segment(&c->launch, i, args, moved, sizes);
      c->fn[0](moved, sizes);
    }
  }
  if (stage == 0) return;
  split_join(&c->launch, args, moved);
  c->fn[1](moved, c->launch.join_sizes);
}

const struct pieces *cut_segments(struct arena *a, const struct step *s, const struct split *split,
                                  kernel_fn *const fn[2]) {
  struct cut_segments *c = arena_new(a, struct cut_segments);
  int64_t cost = cost_of(s);
  *c = (struct cut_segments){.launch = split_launch(a, s->kernel, split, s->sizes, s->segments),
                             .fn = {fn[0], fn[1]},
                             .count = pieces_for(cost, s->segments.count)};
  c->sizes = arena_new_array(a, (size_t)(c->count * kernel_nlaunch(&split->segment)), int64_t);
  struct pieces *p = arena_new(a, struct pieces);
  *p = (struct pieces){.run = run_segments, .state = c, .nstages = 2, .count = {c->count, 1}, .cost = cost};
  return p;
}

const struct pieces *cut_kernel(struct arena *a, const struct step *s, kernel_fn *fn) {
  const struct kernel *k = s->kernel;
  int kept = k->rank - (k->kind == KERNEL_REDUCE ? k->nreduce : 0);
  if (kept == 0 || kernel_nlaunch(k) > MOST_SIZES) return NULL;
  int loop = choose_loop(s, kept);
  int64_t cost = cost_of(s), units = units_of(s, loop);
  int count = pieces_for(cost, units);
  if (count == 1) return NULL;
  struct cut *c = arena_new(a, struct cut);
  *c = (struct cut){fn, k, s->sizes, loop, units, loop == k->vector ? ROUND : 1, count};
  struct pieces *p = arena_new(a, struct pieces);
  *p = (struct pieces){.run = run_cut, .state = c, .nstages = 1, .count = {count}, .cost = cost};
  return p;
}

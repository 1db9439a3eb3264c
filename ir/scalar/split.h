/* SPDX-License-Identifier: Apache-2.0 */
/* A long sum in segments, as two kernels: one adds up a segment, the other adds up what the segments gave. They are
 * ranges of the axis that is reduced over first, or of the next ones within each of its rows; how many there are
 * follows from the shape of what is added up. */
#ifndef DGC_IR_SCALAR_SPLIT_H
#define DGC_IR_SCALAR_SPLIT_H

#include "ir/scalar/kernel.h"

/* How a launch is done: in `count` segments of the `rows` rows of these axes, segment p being those from
 * rows * p / count on, which lie in one row of all of the axes but the last. 0 or 1: as one. */
struct segments {
  int count;
  int64_t rows;
};
/* The longer a chain, the more it is off, most of all where one number is added again and again: each addition is then
 * rounded the same way. */
enum { MOST_SEGMENTS = 1024, LEAST_SEGMENT = 256 };

/* Of a sum over `elements` elements for each chain of additions, `naxes` axes of which may be cut, the first first. */
struct segments segments_of(int64_t elements, const int64_t *extents, int naxes);

/* Whether k has these two kernels; one that has not is never launched in segments. */
bool kernel_splits(const struct kernel *k);
/* The two kernels, in `a`. `segment` has the loops, inputs and mapped outputs of `k`; in the place of its other outputs
 * it writes its sums. `join` has the kept loops and one over the segments, the inputs, the sums as further inputs, and
 * the outputs of `k` that are not mapped. False where lanes of k run along
 * kept loops but not the last one, or along some few elements (`narrow`). */
struct split {
  struct kernel segment, join;
};
bool kernel_split(struct arena *a, const struct kernel *k, struct split *out);

/* A launch of `k`, with the sizes of both. What the segments give lies dense: [sum][segment][results], or
 * [sum][results][segment] where lanes of k run along what is added up. */
struct split_launch {
  const struct kernel *k;
  const struct split *split;
  struct segments segments;
  const int64_t *sizes; /* of k */
  int64_t *join_sizes;
  int64_t results;   /* of each sum */
  int64_t sum_bytes; /* of the segments of one sum */
  char *sums;
};
/* `sums` is taken from `a`, too. */
struct split_launch split_launch(struct arena *a, const struct kernel *k, const struct split *split,
                                 const int64_t *sizes, struct segments segments);
/* What segment `p` is called with; `sizes` has room for those of split->segment. */
void split_segment(const struct split_launch *l, int p, void *const *args, void **segment_args,
                   int64_t *sizes);
/* The same of the join, with l->join_sizes. */
void split_join(const struct split_launch *l, void *const *args, void **join_args);

/* As kernel_eval, in segments. */
void kernel_eval_split(const struct kernel *k, void *const *args, const int64_t *sizes,
                       struct segments segments);

#endif

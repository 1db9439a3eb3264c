/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph may give: for each element an interval that holds every value that some permitted order of
 * summation gives, with or without fused multiply-adds.
 *
 * An element that cannot differ is a single point and must be matched to the bit. Uncertainty is born only where
 * floats are summed or multiplied up (reduce_sum, reduce_prod, matmul), and not even there when every partial sum
 * is exact: when all terms are multiples of one power of two and their absolute sum has no more bits than the
 * type. Otherwise n terms may be off by gamma(n) * sum |term|, gamma(n) = n u / (1 - n u), u half an ulp of 1
 * (Higham, Accuracy and Stability of Numerical Algorithms, 4.2), whatever the order. Elementwise ops carry
 * intervals through: their least and greatest value over the box of their operands, found at its corners and at
 * zeros inside; where the body is not correctly rounded, 8 ulp more (two bodies of at most 4). */
#ifndef TESTS_SUPPORT_BOUND_H
#define TESTS_SUPPORT_BOUND_H

#include "tests/support/elements.h"

/* lo == hi: this value. lo = -inf, hi = inf: anything, NaN too. Integers and bools as numbers. */
struct interval {
  double lo, hi;
};

struct bounds {
  struct tensor value; /* the oracle's */
  struct interval *at; /* NULL: exactly `value` */
  /* Of sums, and of what is linear in them, if towers are allowed for: the sum of |term|, and the exponent of two
   * of which all terms are multiples. NULL for others. */
  double *size, *quantum;
};

/* As graph_eval for a source graph, with bounds. `additions` 0: what one tower gives. Else towers are allowed for:
 * each may hold a share of a sum, additions may be done on the shares, and the shares are added up; that many more
 * additions per sum. */
bool graph_bounds(struct arena *a, const struct graph *g, const struct values *inputs,
                  const struct values *variables, int additions, struct bounds *out);
const struct bounds *output_bounds(const struct graph *g, const struct bounds *bounds, const char *name);

/* What is wrong with `got`, or NULL: exact elements are equal (any NaN is any NaN, and the extreme of +0 and -0 is
 * either), others lie inside. */
const char *bounds_breach(struct arena *a, const struct bounds *b, const struct tensor *got);
/* Elements of which anything is allowed. */
int64_t bounds_unknown(const struct bounds *b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests ask of a leaf, in a file of its name: shapes to try, and how far off its results may be when its
 * operands are. The linker names one that is missing. */
#ifndef TESTS_LEAVES_LEAF_H
#define TESTS_LEAVES_LEAF_H

#include "tests/support/bound.h"
#include "tests/support/cases.h"

#include <math.h>

/* Adds cases of c->op on elements of d: case_leaf, case_done. */
typedef void leaf_cases_fn(struct cases *c, enum dtype d);
/* Fills out->at; and out->size and out->quantum where they are not NULL, which of a sum sum_result does. */
typedef void leaf_bounds_fn(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                            struct bounds *out);
#define OP(name, spread)
#define LEAF(name, spread)    \
  leaf_cases_fn name##_cases; \
  leaf_bounds_fn name##_bounds;
#include "ir/ops/ops.def"
#undef OP

/* Element i of an operand or result, as an interval. */
struct interval bound_at(const struct bounds *b, int64_t i);
const struct interval *bounds_of_all(struct arena *a, const struct bounds *b);
static const struct interval interval_any = {-(double)INFINITY, (double)INFINITY};
bool interval_is_any(struct interval x);
bool interval_is_point(struct interval x);
/* So that x lies in it. */
void interval_widen(struct interval *r, double x);

/* Terms of one sum, any order. */
struct sum {
  enum dtype dtype;
  int64_t terms;
  long double lo, hi, size; /* size: sum of |term| */
  int quantum;              /* all terms are multiples of 2^quantum */
  bool points, unknown;
};

struct sum sum_make(enum dtype d);
void sum_add(struct sum *s, long double lo, long double hi);
/* A term that is a product of two. */
static inline void sum_add_product(struct sum *s, struct interval x, struct interval y) {
  if (x.lo == x.hi && y.lo == y.hi) { /* then the four are one */
    long double only = (long double)x.lo * y.lo;
    sum_add(s, only, only);
    return;
  }
  if (isnan(x.lo) || isnan(x.hi) || isnan(y.lo) || isnan(y.hi)) {
    sum_add(s, -INFINITY, INFINITY);
    return;
  }
  long double p[4] = {(long double)x.lo * y.lo, (long double)x.lo * y.hi, (long double)x.hi * y.lo,
                      (long double)x.hi * y.hi};
  long double lo = p[0], hi = p[0];
  for (int i = 1; i < 4; i++) lo = fminl(lo, p[i]), hi = fmaxl(hi, p[i]);
  for (int i = 0; i < 4; i++)
    if (isnan(p[i])) lo = -INFINITY, hi = INFINITY;
  sum_add(s, lo, hi);
}
/* A term that is itself the sum of terms of this size and quantum. */
void sum_add_share(struct sum *s, struct interval v, double size, double quantum);
struct interval sum_total(const struct sum *s, int additions);
/* The sum is element e of the result. */
void sum_result(const struct sum *s, int additions, struct bounds *out, int64_t e);

#endif

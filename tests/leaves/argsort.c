/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"
#include "tests/leaves/leaf.h"

/* Also longer than what the CPU sorts by insertion. */
void argsort_cases(struct cases *c, enum dtype d) {
  static const char *const shapes[] = {"1", "17", "0", "5,3", "3,0", "2,5,3", "70,33", "2,300"};
  for (int i = 0; i < CASE_COUNT(shapes); i++) {
    struct type t = case_shape(d, shapes[i]);
    for (int k = 0; k < 2 * t.rank; k++) {
      struct attr attrs[] = {attr_int(ATTR_axis, k / 2), attr_int(ATTR_descending, k % 2)};
      struct node *x = case_leaf(c, &t);
      case_done(c, build(c->g, OP_argsort, 1, &x, 2, attrs, NULL));
    }
  }
}

/* An element stands behind all that are less for certain, and behind no more than those that may be. */
void argsort_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                    struct bounds *out) {
  struct lines l = lines_of(n);
  (void)a, (void)additions;
  for (int64_t line = 0; line < l.outer * l.inner; line++) {
    int64_t at = line / l.inner * l.length * l.inner + line % l.inner;
    for (int64_t i = 0; i < l.length; i++)
      out->at[at + i * l.inner] = (struct interval){(double)l.length, -1};
    for (int64_t i = 0; i < l.length; i++) {
      struct interval x = bound_at(&in[0], at + i * l.inner);
      int64_t first = 0, last = 0;
      for (int64_t k = 0; k < l.length; k++) {
        struct interval y = bound_at(&in[0], at + k * l.inner);
        bool less = node_int_or(n, ATTR_descending, 0) ? y.lo > x.hi : y.hi < x.lo;
        bool more = node_int_or(n, ATTR_descending, 0) ? y.hi < x.lo : y.lo > x.hi;
        first += less;
        last += k != i && !more;
      }
      for (int64_t k = first; k <= last; k++) interval_widen(&out->at[at + k * l.inner], (double)i);
    }
  }
}

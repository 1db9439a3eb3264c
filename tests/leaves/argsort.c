/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/leaves/lines.h"

void argsort_cases(struct cases *c, enum dtype d) { line_cases(c, d); }

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

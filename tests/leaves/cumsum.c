/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/leaves/lines.h"

void cumsum_cases(struct cases *c, enum dtype d) { line_cases(c, d); }

void cumsum_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                   struct bounds *out) {
  (void)a;
  struct lines l = lines_of(n);
  bool reverse = node_int_or(n, ATTR_reverse, 0), exclusive = node_int_or(n, ATTR_exclusive, 0);
  for (int64_t line = 0; line < l.outer * l.inner; line++) {
    struct sum s = sum_make(n->type.dtype);
    for (int64_t i = 0; i < l.length; i++) {
      int64_t k = reverse ? l.length - 1 - i : i,
              at = (line / l.inner * l.length + k) * l.inner + line % l.inner;
      struct interval v = bound_at(&in[0], at);
      struct sum before = s;
      if (in[0].size)
        sum_add_share(&s, v, in[0].size[at], in[0].quantum[at]);
      else
        sum_add(&s, v.lo, v.hi);
      if (out->size)
        sum_result(exclusive ? &before : &s, additions, out, at);
      else
        out->at[at] = sum_total(exclusive ? &before : &s, additions);
    }
  }
}

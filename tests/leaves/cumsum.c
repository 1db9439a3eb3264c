/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ops/leaf.h"
#include "tests/leaves/leaf.h"

void cumsum_cases(struct cases *c, enum dtype d) {
  static const char *const shapes[] = {"1", "17", "0", "5,3", "3,0", "4,16", "2,5,3", "2,3,4,5", "70,33"};
  for (int i = 0; i < CASE_COUNT(shapes); i++) {
    struct type t = case_shape(d, shapes[i]);
    if (c->small && type_count(&t) > 40) continue;
    for (int axis = 0; axis < t.rank; axis++)
      for (int how = 0; how < 4; how++)
        case_done(c, build_cumsum(c->g, case_leaf(c, &t), axis, how & 1, how & 2));
  }
}

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

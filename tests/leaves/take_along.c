/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/leaves/along.h"

void take_along_cases(struct cases *c, enum dtype d) { along_cases(c, d); }

/* The element that is picked; any of its line, or 0, where the place is not certain. */
void take_along_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                       struct bounds *out) {
  int64_t length = n->inputs[0]->type.dim[node_int(n, ATTR_axis)], step;
  (void)a, (void)additions;
  for (int64_t e = 0; e < type_count(&n->type); e++) {
    int64_t first = along_line(n, e, &step);
    struct interval place = bound_at(&in[1], e);
    bool known = interval_is_point(place), there = known && place.lo >= 0 && place.lo < (double)length;
    out->at[e] = there ? bound_at(&in[0], first + (int64_t)place.lo * step) : (struct interval){0, 0};
    for (int64_t i = 0; i < length && !known; i++) {
      struct interval v = bound_at(&in[0], first + i * step);
      if (isnan(v.lo)) v = interval_any;
      interval_widen(&out->at[e], v.lo);
      interval_widen(&out->at[e], v.hi);
    }
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/leaves/along.h"

void add_along_cases(struct cases *c, enum dtype d) { along_cases(c, d); }

/* The sums of what is added to each element. */
void add_along_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                      struct bounds *out) {
  int64_t results = type_count(&n->type), length = n->type.dim[node_int(n, ATTR_axis)], step;
  struct sum *sums = arena_new_array(a, (size_t)results + 1, struct sum);
  for (int64_t e = 0; e < results; e++) {
    struct interval v = bound_at(&in[0], e);
    sums[e] = sum_make(n->type.dtype);
    sum_add(&sums[e], v.lo, v.hi);
  }
  for (int64_t e = 0; e < type_count(&n->inputs[1]->type) && !in[1].at; e++) {
    int64_t first = along_line(n, e, &step);
    double place = tensor_at(&in[1].value, e);
    struct interval v = bound_at(&in[2], e);
    if (place >= 0 && place < (double)length) sum_add(&sums[first + (int64_t)place * step], v.lo, v.hi);
  }
  for (int64_t e = 0; e < results; e++) out->at[e] = in[1].at ? interval_any : sum_total(&sums[e], additions);
}

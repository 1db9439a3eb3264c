/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/leaves/rows.h"

void scatter_add_cases(struct cases *c, enum dtype d) { rows_cases(c, d); }

/* The sums of what is added to each row. */
void scatter_add_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                        struct bounds *out) {
  int64_t results = type_count(&n->type), width = row_width(&n->type),
          count = type_count(&n->inputs[1]->type);
  struct sum *sums = arena_new_array(a, (size_t)results, struct sum);
  for (int64_t e = 0; e < results; e++) {
    struct interval v = bound_at(&in[0], e);
    sums[e] = sum_make(n->type.dtype);
    if (in[0].size)
      sum_add_share(&sums[e], v, in[0].size[e], in[0].quantum[e]);
    else
      sum_add(&sums[e], v.lo, v.hi);
  }
  for (int64_t i = 0; i < count && !in[1].at; i++) {
    int64_t row = row_at(n, &in[1], i);
    for (int64_t k = 0; k < width && row >= 0; k++) {
      struct interval v = bound_at(&in[2], i * width + k);
      sum_add(&sums[row * width + k], v.lo, v.hi);
    }
  }
  for (int64_t e = 0; e < results; e++) out->at[e] = in[1].at ? interval_any : sum_total(&sums[e], additions);
}

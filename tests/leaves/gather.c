/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/leaves/rows.h"

void gather_cases(struct cases *c, enum dtype d) { rows_cases(c, d); }

/* The rows that are picked. */
void gather_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                   struct bounds *out) {
  int64_t results = type_count(&n->type), width = row_width(&n->inputs[0]->type);
  (void)a, (void)additions;
  for (int64_t e = 0; e < results; e++) {
    int64_t row = in[1].at ? -1 : row_at(n, &in[1], e / width);
    out->at[e] = in[1].at ? interval_any : (struct interval){0, 0}; /* any row, it may be */
    if (row >= 0) out->at[e] = bound_at(&in[0], row * width + e % width);
  }
}

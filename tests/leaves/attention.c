/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/leaves/attention.h"

void attention_cases(struct cases *c, enum dtype d) { attention_cases_of(c, d); }

/* The values that row i sees, by its weights. */
static void row_bounds(const struct attention_bound *x, int64_t i, struct bounds *out) {
  int64_t at = ((x->b * x->s.queries + i) * x->s.heads + x->h) * x->s.values;
  for (int64_t d = 0; d < x->s.values; d++) {
    struct sum sum = sum_make(x->d);
    for (int64_t j = 0; j < x->s.keys && !x->any; j++)
      if (!isnan(x->p[j].lo)) {
        struct interval term = attention_times(x->p[j], attention_at(x, 2, j, d));
        sum_add(&sum, term.lo, term.hi);
      }
    out->at[at + d] = x->any ? interval_any : sum_total(&sum, x->additions + (int)x->s.keys);
  }
}

void attention_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                      struct bounds *out) {
  struct attention_bound x = attention_bound(a, n, in, additions);
  for (x.b = 0; x.b < x.s.batch; x.b++)
    for (x.h = 0; x.h < x.s.heads; x.h++)
      for (int64_t i = 0; i < x.s.queries; i++) {
        attention_weights(&x, i);
        row_bounds(&x, i, out);
      }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/leaves/window.h"

void window_sum_cases(struct cases *c, enum dtype d) { window_cases(c, d); }

struct adding {
  const struct bounds *in;
  struct sum sum;
};

static void see(void *user, int64_t at) {
  struct adding *a = user;
  struct interval v = bound_at(a->in, at);
  if (a->in->size)
    sum_add_share(&a->sum, v, a->in->size[at], a->in->quantum[at]);
  else
    sum_add(&a->sum, v.lo, v.hi);
}

void window_sum_bounds(struct arena *arena, const struct node *n, const struct bounds *in, int additions,
                       struct bounds *out) {
  (void)arena;
  for (int64_t e = 0; e < type_count(&n->type); e++) {
    struct adding a = {in, sum_make(n->type.dtype)};
    window_seen(n, e, see, &a);
    if (out->size)
      sum_result(&a.sum, additions, out, e);
    else
      out->at[e] = sum_total(&a.sum, additions);
  }
}

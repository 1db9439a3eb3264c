/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/leaves/window.h"

void window_put_cases(struct cases *c, enum dtype d) { window_cases(c, d); }

/* What a window gives comes to all that it sees, where it is not certain which of them it chooses. */
struct giving {
  struct sum *sums;
  struct interval value;
};

static void see(void *user, int64_t at) {
  struct giving *g = user;
  if (isnan(g->value.lo))
    sum_add(&g->sums[at], NAN, NAN);
  else
    sum_add(&g->sums[at], fmin(g->value.lo, 0), fmax(g->value.hi, 0));
}

void window_put_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                       struct bounds *out) {
  struct windows w = windows_of(n);
  struct sum *sums = arena_new_array(a, (size_t)type_count(&n->type) + 1, struct sum);
  for (int64_t e = 0; e < type_count(&n->type); e++) sums[e] = sum_make(n->type.dtype);
  for (int64_t e = 0; e < type_count(&n->inputs[1]->type); e++) {
    struct giving g = {sums, bound_at(&in[1], e)};
    int64_t at = window_choice(&w, &in[0].value, e);
    if (in[0].at)
      window_seen(n, e, see, &g);
    else if (at >= 0)
      sum_add(&sums[at], g.value.lo, g.value.hi);
  }
  for (int64_t e = 0; e < type_count(&n->type); e++) out->at[e] = sum_total(&sums[e], additions);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/leaves/window.h"

void window_max_cases(struct cases *c, enum dtype d) { window_cases(c, d); }

struct greatest {
  const struct bounds *in;
  struct interval most;
  int64_t count;
};

static void see(void *user, int64_t at) {
  struct greatest *g = user;
  struct interval v = bound_at(g->in, at);
  if (g->count++ == 0) {
    g->most = v;
    return;
  }
  if (isnan(v.lo) || isnan(g->most.lo)) { /* a point: NaN it is */
    g->most = (struct interval){NAN, NAN};
    return;
  }
  if (v.lo > g->most.lo) g->most.lo = v.lo;
  if (v.hi > g->most.hi) g->most.hi = v.hi;
}

void window_max_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                       struct bounds *out) {
  (void)a, (void)additions;
  for (int64_t e = 0; e < type_count(&n->type); e++) {
    struct greatest g = {.in = in};
    window_seen(n, e, see, &g);
    out->at[e] = g.count ? g.most : bound_at(&(struct bounds){.value = out->value}, e);
  }
}

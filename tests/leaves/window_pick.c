/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/leaves/window.h"

void window_pick_cases(struct cases *c, enum dtype d) { window_cases(c, d); }

/* Any of what the window sees, where it is not certain which it chooses. */
struct picking {
  const struct bounds *values;
  struct interval all;
  int64_t count;
};

static void see(void *user, int64_t at) {
  struct picking *p = user;
  struct interval v = bound_at(p->values, at);
  if (isnan(v.lo)) v = interval_any;
  if (p->count++ == 0) p->all = v;
  interval_widen(&p->all, v.lo);
  interval_widen(&p->all, v.hi);
}

void window_pick_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                        struct bounds *out) {
  struct windows w = windows_of(n);
  (void)a, (void)additions;
  for (int64_t e = 0; e < type_count(&n->type); e++) {
    struct picking p = {.values = &in[1]};
    int64_t at = window_choice(&w, &in[0].value, e);
    if (in[0].at) window_seen(n, e, see, &p);
    out->at[e] = in[0].at ? p.all : at >= 0 ? bound_at(&in[1], at) : (struct interval){0, 0};
  }
}

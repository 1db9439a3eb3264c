/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/oracle/overflow.h"

#include "ir/ops/leaf.h"

#include <float.h>
#include <math.h>

/* The terms of a running sum so far. */
struct terms {
  long double sum, given;          /* of all; of those that are not finite */
  long double greatest;            /* sum of terms that stand beside each other, the last one among them, */
  long double least;               /* and the least */
  bool overflow_up, overflow_down; /* whether there were sums of that kind that are no numbers */
};

static void add_term(struct terms *t, long double x, long double most) {
  t->sum += x;
  t->given += isfinite(x) ? 0 : x;
  t->greatest = fmaxl(0, t->greatest) + x;
  t->least = fminl(0, t->least) + x;
  t->overflow_up |= t->greatest > most;
  t->overflow_down |= t->least < -most;
}

/* One line: term i is x[at[i]], sum i at[i], too. */
static void widen_line(const struct tensor *x, const int64_t *at, int64_t length, bool exclusive,
                       long double most, struct interval *sums) {
  struct terms t = {0};
  for (int64_t i = 0; i < length; i++) {
    struct interval *v = &sums[at[i]];
    if (!exclusive || i > 0) add_term(&t, tensor_at(x, at[i - exclusive]), most);
    if (isnan(t.given)) continue; /* in any order */
    if (t.overflow_up) *v = (struct interval){fmin(v->lo, (double)t.sum), INFINITY};
    if (t.overflow_down) *v = (struct interval){-INFINITY, fmax(v->hi, (double)t.sum)};
    if (t.overflow_up && t.overflow_down) *v = (struct interval){-INFINITY, INFINITY};
  }
}

void overflow_widen(struct arena *a, const struct node *n, const struct tensor *x, struct bounds *b) {
  struct lines l = lines_of(n);
  bool reverse = node_int_or(n, ATTR_reverse, 0), f32 = n->type.dtype == DT_F32;
  long double most = f32 ? FLT_MAX : (long double)DBL_MAX;
  most *= 1 - (long double)l.length * (f32 ? FLT_EPSILON : (long double)DBL_EPSILON);
  int64_t count = type_count(&n->type), *at = arena_new_array(a, (size_t)l.length + 1, int64_t);
  b->at = arena_new_array(a, (size_t)count + 1, struct interval);
  for (int64_t e = 0; e < count; e++)
    b->at[e] = (struct interval){tensor_at(&b->value, e), tensor_at(&b->value, e)};
  for (int64_t line = 0; l.length && line < l.outer * l.inner; line++) {
    for (int64_t i = 0; i < l.length; i++) {
      int64_t row = reverse ? l.length - 1 - i : i;
      at[i] = (line / l.inner * l.length + row) * l.inner + line % l.inner;
    }
    widen_line(x, at, l.length, node_int_or(n, ATTR_exclusive, 0), most, b->at);
  }
}

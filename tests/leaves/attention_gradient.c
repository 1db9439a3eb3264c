/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/leaves/attention.h"

void attention_gradient_cases(struct cases *c, enum dtype d) { attention_cases_of(c, d); }

/* Sums of the derivatives of one row of the batch: of q, of k and of v, as they lie in the result. */
struct parts {
  struct sum *of[3];
};

/* Adds w times row `from` of an operand to row `to` of a derivative. */
static void add_row(const struct attention_bound *x, struct parts *p, int part, int64_t to, struct interval w,
                    int operand, int64_t from) {
  int64_t size = part == 2 ? x->s.values : x->s.size;
  for (int64_t d = 0; d < size; d++) {
    struct interval term = attention_times(w, attention_at(x, operand, from, d));
    struct sum *sum = &p->of[part][(to * x->s.heads + x->h) * size + d];
    if (isfinite(term.lo) && isfinite(term.hi))
      sum_add(sum, term.lo, term.hi);
    else
      sum->unknown = true;
  }
}

static void add_pair(const struct attention_bound *x, struct parts *p, int64_t i, int64_t j,
                     struct interval dots) {
  struct interval back = attention_dot(x, 4, i, 2, j, x->s.values), w = x->any ? interval_any : x->p[j];
  struct interval gap = {back.lo - dots.hi, back.hi - dots.lo};
  double scale = 1 / sqrt((double)x->s.size), size = fmax(fabs(gap.lo), fabs(gap.hi));
  struct interval ds = attention_times(w, attention_off(x->d, gap, 4, size));
  ds = isnan(ds.lo) || isnan(ds.hi) ? interval_any : (struct interval){ds.lo * scale, ds.hi * scale};
  ds = attention_off(x->d, ds, 8, fmax(fabs(ds.lo), fabs(ds.hi)));
  add_row(x, p, 0, i, ds, 1, j);
  add_row(x, p, 1, j, ds, 0, i);
  add_row(x, p, 2, j, w, 4, i);
}

void attention_gradient_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                               struct bounds *out) {
  struct attention_bound x = attention_bound(a, n, in, additions);
  int64_t width = n->type.dim[1], rows_q = x.s.queries * x.s.heads * x.s.size;
  struct sum *sums = arena_new_array(a, (size_t)width + 1, struct sum);
  struct parts p = {{sums, sums + rows_q, sums + rows_q + x.s.keys * x.s.heads * x.s.size}};
  for (x.b = 0; x.b < x.s.batch; x.b++) {
    for (int64_t e = 0; e < width; e++) sums[e] = sum_make(x.d);
    for (x.h = 0; x.h < x.s.heads; x.h++)
      for (int64_t i = 0; i < x.s.queries; i++) {
        struct interval dots = attention_dot(&x, 3, i, 4, i, x.s.values);
        attention_weights(&x, i);
        for (int64_t j = 0; j < x.s.keys; j++)
          if (attention_seen(&x, i, j)) add_pair(&x, &p, i, j, dots);
      }
    for (int64_t e = 0; e < width; e++)
      out->at[x.b * width + e] = sum_total(&sums[e], x.additions + (int)(x.s.keys + x.s.queries));
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Heads to try, and what attention and its derivatives have in common: the softmax as intervals. */
#ifndef TESTS_LEAVES_ATTENTION_H
#define TESTS_LEAVES_ATTENTION_H

#include "ir/graph/build.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"
#include "tests/leaves/leaf.h"

#include <float.h>

struct attention_shape {
  int64_t batch, queries, keys, heads, size, values;
  bool small;
};

static const struct attention_shape attention_shapes[] = {
    {1, 2, 3, 1, 2, 1, true},      {3, 1, 2, 1, 1, 2, true},       {1, 3, 2, 3, 1, 1, true},
    {2, 65, 70, 1, 17, 33, false}, {1, 130, 65, 2, 16, 16, false}, {1, 1, 1, 1, 1, 1, false},
    {1, 5, 131, 1, 64, 3, false},  {0, 2, 3, 1, 2, 2, false},      {1, 3, 0, 1, 2, 2, false},
    {1, 0, 3, 1, 2, 2, false},     {1, 3, 4, 1, 2, 0, false},      {1, 20, 96, 1, 48, 64, false},
};

/* A mask of the shape `kind`: 0: none. */
static inline bool attention_mask(const struct attention_shape *s, int kind, struct type *t) {
  const int64_t whole[4] = {s->batch, s->heads, s->queries, s->keys};
  static const int kept[][4] = {{1, 1, 1, 1}, {0, 0, 0, 1}, {1, 0, 1, 0}, {0, 1, 1, 1}};
  *t = (struct type){.dtype = DT_BOOL, .rank = 4};
  for (int i = 0; kind && i < 4; i++) t->dim[i] = kept[kind - 1][i] ? whole[i] : 1;
  return kind != 0;
}

static inline void attention_case(struct cases *c, enum dtype d, const struct attention_shape *s, bool causal,
                                  int kind) {
  struct type q = {d, 4, {s->batch, s->queries, s->heads, s->size}}, k = q, v, y, mask;
  struct attr flag = attr_int(ATTR_causal, 1);
  struct node *in[6];
  int count = 0;
  k.dim[1] = s->keys;
  v = k, y = q;
  v.dim[3] = y.dim[3] = s->values;
  const struct type *types[] = {&q, &k, &v, &y, &y};
  while (count < (c->op == OP_attention ? 3 : 5)) in[count] = case_leaf(c, types[count]), count++;
  if (attention_mask(s, kind, &mask)) in[count++] = case_leaf(c, &mask);
  case_done(c, build(c->g, c->op, count, in, causal, &flag, NULL));
}

static inline void attention_cases_of(struct cases *c, enum dtype d) {
  for (int i = 0; i < CASE_COUNT(attention_shapes); i++)
    for (int kind = 0; kind < 5; kind++)
      for (int causal = 0; causal < 2; causal++)
        if (!c->small || attention_shapes[i].small) attention_case(c, d, &attention_shapes[i], causal, kind);
}

/* ---- bounds ---- */

/* One head of a row of the batch. */
struct attention_bound {
  const struct node *n;
  struct attention s;
  const struct bounds *in, *mask; /* mask: NULL: none */
  int64_t b, h;
  enum dtype d;
  int additions;
  struct interval *score, *p; /* of one row */
  bool any, none;             /* of it: nothing is known; all is 0 */
};

static inline struct attention_bound attention_bound(struct arena *a, const struct node *n,
                                                     const struct bounds *in, int additions) {
  struct attention_bound x = {.n = n, .s = attention_of(n), .in = in, .d = (enum dtype)n->type.dtype};
  x.additions = additions + 16;
  x.mask = x.s.masked ? &in[n->ninputs - 1] : NULL;
  x.score = arena_new_array(a, (size_t)x.s.keys + 1, struct interval);
  x.p = arena_new_array(a, (size_t)x.s.keys + 1, struct interval);
  return x;
}

/* Number d of row i of a head of an operand. */
static inline struct interval attention_at(const struct attention_bound *x, int operand, int64_t i,
                                           int64_t d) {
  const struct type *t = &x->n->inputs[operand]->type;
  return bound_at(&x->in[operand], ((x->b * t->dim[1] + i) * t->dim[2] + x->h) * t->dim[3] + d);
}

static inline bool attention_seen(const struct attention_bound *x, int64_t i, int64_t j) {
  const int64_t *step = x->s.mask_step;
  if (x->s.causal && j > i) return false;
  return !x->mask || bound_at(x->mask, x->b * step[0] + x->h * step[1] + i * step[2] + j * step[3]).lo != 0;
}

static inline struct interval attention_times(struct interval a, struct interval b) {
  double p[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  struct interval r = {p[0], p[0]};
  for (int i = 0; i < 4; i++) {
    if (isnan(p[i])) return interval_any;
    interval_widen(&r, p[i]);
  }
  return r;
}

/* Off by so many roundings of numbers of this size. */
static inline struct interval attention_off(enum dtype d, struct interval x, double roundings, double size) {
  double by = roundings * (d == DT_F32 ? FLT_EPSILON : DBL_EPSILON) * size;
  return (struct interval){x.lo - by, x.hi + by};
}

/* Row i of one operand with row j of another. */
static inline struct interval attention_dot(const struct attention_bound *x, int a, int64_t i, int b,
                                            int64_t j, int64_t count) {
  struct sum sum = sum_make(x->d);
  for (int64_t d = 0; d < count; d++)
    sum_add_product(&sum, attention_at(x, a, i, d), attention_at(x, b, j, d));
  return sum_total(&sum, x->additions + (int)count);
}

/* The weights of row i; NaN: it does not see the key. Each is 1 / (1 + the sum of e^(score of another - its own)). */
static inline void attention_weights(struct attention_bound *x, int64_t i) {
  double scale = 1 / sqrt((double)x->s.size), most = 0, least = x->d == DT_F32 ? 1e-35 : 1e-290;
  x->any = false, x->none = true;
  for (int64_t j = 0; j < x->s.keys; j++) {
    x->score[j] = x->p[j] = (struct interval){NAN, NAN};
    if (!attention_seen(x, i, j)) continue;
    struct interval s = attention_dot(x, 0, i, 1, j, x->s.size);
    x->any = x->any || !isfinite(s.lo) || !isfinite(s.hi);
    x->score[j] = (struct interval){s.lo * scale, s.hi * scale};
    most = fmax(most, fmax(fabs(x->score[j].lo), fabs(x->score[j].hi)));
    x->none = false;
  }
  for (int64_t j = 0; j < x->s.keys && !x->any; j++) {
    struct interval own = attention_off(x->d, x->score[j], 4, most), others = {0, 0};
    if (isnan(own.lo)) continue;
    for (int64_t k = 0; k < x->s.keys; k++) {
      if (k == j || isnan(x->score[k].lo)) continue;
      struct interval other = attention_off(x->d, x->score[k], 4, most);
      others.lo += exp(other.lo - own.hi);
      others.hi += exp(other.hi - own.lo);
    }
    struct interval p = {1 / (1 + others.hi), 1 / (1 + others.lo)};
    p = attention_off(x->d, p, (double)x->additions + (double)x->s.keys, p.hi);
    x->p[j] = (struct interval){p.lo < least ? 0 : p.lo, p.hi + least};
  }
}

#endif

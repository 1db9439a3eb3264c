/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, see ir/ops/attention.c: products with all scores between them. */
#include "hlo/rules.h"

#include "ir/ops/leaf.h"

#include <math.h>

/* Of one node: operands, and the scores' type [B, H, I, J]. */
struct heads {
  struct hlo *h;
  const struct node *n;
  struct attention s;
  enum dtype d;
  struct type scores;
  const struct hlo_value *in;
};

/* The sizes are those of the values, which know the batch. */
static struct heads heads_of(struct hlo *h, const struct node *n, const struct hlo_value *in) {
  const struct type *q = &in[0].type, *k = &in[1].type;
  struct heads x = {.h = h, .n = n, .s = attention_of(n), .d = (enum dtype)q->dtype, .in = in};
  x.scores = (struct type){q->dtype, 4, {q->dim[0], q->dim[2], q->dim[1], k->dim[1]}};
  return x;
}

static struct hlo_value product(const struct heads *x, const struct type *t, struct hlo_value a,
                                const int64_t *axes_a, int sum_a, struct hlo_value b, const int64_t *axes_b,
                                int sum_b) {
  struct arena *arena = x->h->arena;
  const char *attrs = arena_printf(
      arena,
      "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = %s, rhs_batching_dimensions = %s, "
      "lhs_contracting_dimensions = [%d], rhs_contracting_dimensions = [%d]>, "
      "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]",
      hlo_list(arena, 2, axes_a), hlo_list(arena, 2, axes_b), sum_a, sum_b);
  return hlo_op(x->h, "dot_general", t, 2, (struct hlo_value[]){a, b}, attrs, NULL);
}

static const int64_t of_rows[] = {0, 2}, of_scores[] = {0, 1};

/* Rows with rows: scores. */
static struct hlo_value meet(const struct heads *x, struct hlo_value a, struct hlo_value b) {
  return product(x, &x->scores, a, of_rows, 3, b, of_rows, 3);
}

/* Scores with the rows that their axis `sum` counts: rows of the other, as a tensor of type t. */
static struct hlo_value gather(const struct heads *x, struct hlo_value scores, int sum, struct hlo_value rows,
                               const struct type *t) {
  struct type heads_first = *t;
  heads_first.dim[1] = t->dim[2], heads_first.dim[2] = t->dim[1];
  struct hlo_value y = product(x, &heads_first, scores, of_scores, sum, rows, of_rows, 1);
  return hlo_permuted(x->h, y, (const int64_t[]){0, 2, 1, 3});
}

/* Joined over the keys, and each row's again for all of them. */
static struct hlo_value over_keys(const struct heads *x, const char *name, double first, struct hlo_value v) {
  struct type rows = {v.type.dtype, 3, {v.type.dim[0], v.type.dim[1], v.type.dim[2]}};
  struct type scalar = type_scalar(x->d);
  v = hlo_reduce(x->h, name, v, hlo_number(x->h, &scalar, first), &rows, 1, (const int64_t[]){3});
  return hlo_repeated(x->h, v, &x->scores, 3, (const int64_t[]){0, 1, 2});
}

static struct hlo_value repeated_mask(const struct heads *x, struct hlo_value mask) {
  struct type t = type_with_dtype(x->scores, DT_BOOL), kept = {.dtype = DT_BOOL};
  int64_t axes[4];
  for (int i = 0; i < 4; i++)
    if (mask.type.dim[i] == t.dim[i]) axes[kept.rank] = i, kept.dim[kept.rank++] = t.dim[i];
  return hlo_repeated(x->h, hlo_shaped(x->h, mask, &kept), &t, kept.rank, axes);
}

static struct hlo_value scaled(const struct heads *x, struct hlo_value v) {
  return hlo_binary(x->h, "multiply", v, hlo_number(x->h, &v.type, 1 / sqrt((double)x->s.size)));
}

/* The softmax; rows of which nothing counts are 0. */
static struct hlo_value weights(const struct heads *x) {
  struct hlo *h = x->h;
  struct hlo_value s = scaled(x, meet(x, x->in[0], x->in[1]));
  struct hlo_value nothing = hlo_number(h, &x->scores, -(double)INFINITY),
                   zero = hlo_number(h, &x->scores, 0);
  if (x->s.causal) {
    struct type places = type_with_dtype(x->scores, DT_I64);
    struct hlo_value i = hlo_count(h, &places, 2), j = hlo_count(h, &places, 3);
    s = hlo_select(h, hlo_compare(h, "GE", i, j), s, nothing);
  }
  if (x->s.masked) s = hlo_select(h, repeated_mask(x, x->in[x->n->ninputs - 1]), s, nothing);
  struct hlo_value top = over_keys(x, "maximum", -(double)INFINITY, s);
  top = hlo_select(h, hlo_compare(h, "EQ", top, nothing), zero, top);
  struct hlo_value e = hlo_unary(h, "exponential", hlo_binary(h, "subtract", s, top));
  struct hlo_value sum = over_keys(x, "add", 0, e);
  sum = hlo_select(h, hlo_compare(h, "EQ", sum, zero), hlo_number(h, &x->scores, 1), sum);
  return hlo_binary(h, "divide", e, sum);
}

static bool is_empty(const struct heads *x) {
  return type_count(&x->in[0].type) == 0 || type_count(&x->in[1].type) == 0 ||
         type_count(&x->in[2].type) == 0;
}

bool hlo_attention(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  struct heads x = heads_of(h, n, in);
  struct type t = hlo_type(h, n);
  if (is_empty(&x))
    *out = hlo_number(h, &t, 0);
  else
    *out = gather(&x, weights(&x), 3, in[2], &t);
  return true;
}

bool hlo_attention_gradient(struct hlo *h, const struct node *n, const struct hlo_value *in,
                            struct hlo_value *out) {
  struct heads x = heads_of(h, n, in);
  struct type t = hlo_type(h, n), line = {in[3].type.dtype, 3, {in[3].type.dim[0], in[3].type.dim[1]}};
  *out = hlo_number(h, &t, 0);
  if (is_empty(&x)) return true;
  struct hlo_value p = weights(&x), zero = hlo_number(h, &(struct type){.dtype = t.dtype}, 0), all[3];
  line.dim[2] = in[3].type.dim[2];
  struct hlo_value dots =
      hlo_reduce(h, "add", hlo_binary(h, "multiply", in[3], in[4]), zero, &line, 1, (const int64_t[]){3});
  dots = hlo_repeated(h, hlo_permuted(h, dots, (const int64_t[]){0, 2, 1}), &x.scores, 3,
                      (const int64_t[]){0, 1, 2});
  struct hlo_value gap = hlo_binary(h, "subtract", meet(&x, in[4], in[2]), dots);
  struct hlo_value ds = scaled(&x, hlo_binary(h, "multiply", p, gap));
  all[0] = gather(&x, ds, 3, in[1], &in[0].type);
  all[1] = gather(&x, ds, 2, in[0], &in[1].type);
  all[2] = gather(&x, p, 2, in[4], &in[2].type);
  for (int i = 0; i < 3; i++) {
    struct type flat = {t.dtype, 2, {t.dim[0], type_count(&all[i].type) / t.dim[0]}};
    all[i] = hlo_shaped(h, all[i], &flat);
  }
  *out = hlo_joined(h, &t, 3, all, 1);
  return true;
}

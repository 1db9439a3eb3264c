/* SPDX-License-Identifier: Apache-2.0 */
/* attention: y[b,i,h] = sum over the keys j that i sees of p[j] v[b,j,h], p the softmax of the scores s[j] = q[b,i,h]
 * . k[b,j,h] / sqrt(D); and attention_gradient, its derivatives.
 *
 * q is [B, I, H, D], k [B, J, H, D], v [B, J, H, E], y [B, I, H, E]. A row i sees all keys, or with `causal` those j
 * <= i, whatever I and J are; of these, where there is a mask, bool [B, H, I, J] of which any axis may be 1, those
 * for which it holds. What a row does not see has no part in it: NaN there does not matter. A row that sees nothing,
 * or whose scores are all -Inf, is 0, and so are its derivatives. NaN and Inf that are seen go on as in the sums.
 *
 * The derivatives are one value, since they have most of their work in common: for each b those of q, of k and of v
 * one behind the other, [B, I*H*D + J*H*D + J*H*E]. Backends hold scores of some rows at a time, never all I x J
 * (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018; Dao, FlashAttention-2, 2023). */
#include "base/integer.h"
#include "ir/graph/build.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"
#include "ir/ops/spatial.h"

#include <math.h>
#include <string.h>

enum { Q, K, V, MASK, Y = 3, DY, GRADIENT_MASK };

static const struct node *mask_of(const struct node *n) {
  int at = n->op == OP_attention ? MASK : GRADIENT_MASK;
  return n->ninputs > at ? n->inputs[at] : NULL;
}

/* ---- shapes ---- */

static bool check_operand(const struct node *n, int i, const struct type *like, struct arena *a,
                          const char **why) {
  const struct type *t = &n->inputs[i]->type;
  const char *name = op_of(n)->roles[i];
  if (type_batch_axis(t) > 0) {
    *why = arena_printf(a, "attention has the batch in the first axis alone, and %s is %s", name,
                        type_text(a, t));
    return false;
  }
  if (type_equal(t, like)) return true;
  *why = arena_printf(a, "attention with q of %s needs %s of %s, not %s", type_text(a, &n->inputs[Q]->type),
                      name, type_text(a, like), type_text(a, t));
  return false;
}

static bool check_mask(const struct node *n, const struct type *scores, struct arena *a, const char **why) {
  const struct type *m = &mask_of(n)->type;
  bool good = m->dtype == DT_BOOL && m->rank == 4 && type_batch_axis(m) <= 0;
  for (int i = 0; good && i < 4; i++) good = m->dim[i] == scores->dim[i] || m->dim[i] == 1;
  if (!good)
    *why = arena_printf(a, "attention needs a mask of %s, of which any axis may be 1, not %s",
                        type_text(a, scores), type_text(a, m));
  return good;
}

/* Of what the keys' rows hold. */
static struct type with_size(const struct type *t, int64_t size) {
  struct type out = *t;
  out.dim[3] = size;
  return out;
}

/* q, k, v and the mask; the type of y. */
static bool check_attention(const struct node *n, struct type *y, struct arena *a, const char **why) {
  const struct type *q = &n->inputs[Q]->type, *k = &n->inputs[K]->type, *v = &n->inputs[V]->type;
  for (int i = Q; i <= V; i++)
    if (n->inputs[i]->type.rank != 4 || !dtype_is_float(n->inputs[i]->type.dtype)) {
      *why = arena_printf(a, "attention needs %s of f32 or f64 as [B, length, heads, size], not %s",
                          op_of(n)->roles[i], type_text(a, &n->inputs[i]->type));
      return false;
    }
  struct type like_k = *q, like_v = with_size(k, v->dim[3]), scores = *q;
  like_k.dim[1] = k->dim[1];
  if (!check_operand(n, Q, q, a, why) || !check_operand(n, K, &like_k, a, why) ||
      !check_operand(n, V, &like_v, a, why))
    return false;
  if (q->dim[3] < 1) {
    *why = "attention needs heads of at least one number";
    return false;
  }
  scores.dtype = DT_BOOL;
  scores.dim[1] = q->dim[2], scores.dim[2] = q->dim[1], scores.dim[3] = k->dim[1];
  *y = with_size(q, v->dim[3]);
  return !mask_of(n) || check_mask(n, &scores, a, why);
}

static bool attention_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  return check_attention(n, out, a, why);
}

/* Elements of one row of the batch; at most SPATIAL_MOST. */
static int64_t row_count(const struct type *t) { return spatial_product(1, 3, t->dim + 1); }

static bool gradient_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  struct type y;
  if (!check_attention(n, &y, a, why) || !check_operand(n, Y, &y, a, why) ||
      !check_operand(n, DY, &y, a, why))
    return false;
  *out = (struct type){.dtype = y.dtype, .rank = 2, .dim = {y.dim[0], 0}};
  for (int i = Q; i <= V; i++) out->dim[1] += row_count(&n->inputs[i]->type);
  if (out->dim[1] <= MAX_ELEMENTS) return true;
  *why = "attention has more derivatives than a tensor has elements";
  return false;
}

struct attention attention_of(const struct node *n) {
  const struct type *q = &n->inputs[Q]->type, *v = &n->inputs[V]->type;
  const struct node *mask = mask_of(n);
  struct attention s = {.batch = q->dim[0],
                        .heads = q->dim[2],
                        .queries = q->dim[1],
                        .keys = v->dim[1],
                        .size = q->dim[3],
                        .values = v->dim[3],
                        .causal = node_int_or(n, ATTR_causal, 0),
                        .masked = mask != NULL};
  s.end = spatial_product(1, 2, (const int64_t[]){s.batch, s.heads});
  int64_t step = 1;
  for (int i = 3; mask && i >= 0; i--) {
    s.mask_step[i] = mask->type.dim[i] == 1 ? 0 : step;
    step = spatial_product(step, 1, &mask->type.dim[i]);
  }
  return s;
}

/* ---- derivatives ---- */

/* A piece of every row of x as a tensor of the type of `like`. */
static struct node *piece(struct graph *g, struct node *x, int64_t *begin, const struct node *like) {
  struct type t = x->type;
  t.dim[1] = row_count(&like->type);
  struct node *cut = build_slice(g, x, (const int64_t[]){0, *begin}, &t);
  *begin += t.dim[1];
  return build_reshape(g, cut, &like->type);
}

static void attention_grad(struct grad *c, const struct node *n, struct node *dy) {
  struct node *y = (struct node *)(uintptr_t)n, *mask = n->ninputs > MASK ? n->inputs[MASK] : NULL;
  struct node *in[] = {n->inputs[Q], n->inputs[K], n->inputs[V], y, dy, mask};
  struct node *all = build(c->g, OP_attention_gradient, mask ? 6 : 5, in, n->nattrs, n->attrs, NULL);
  int64_t begin = 0;
  for (int i = Q; i <= V; i++) grad_add(c, n, i, piece(c->g, all, &begin, n->inputs[i]));
}

/* What the derivatives' own derivative is made of: ordinary nodes, [B, H, I, J] among them. */
struct plain {
  struct graph *g;
  struct type scores;
  double scale;
  struct node *weights; /* p */
};

static struct node *heads_first(struct graph *g, struct node *x) {
  return build_transpose(g, x, (const int64_t[]){0, 2, 1, 3});
}

static struct node *scaled(const struct plain *p, struct node *x) {
  return build2(p->g, OP_mul, x, build_fill(p->g, &x->type, p->scale));
}

/* f over each row of the scores, for each of its elements. */
static struct node *over_row(const struct plain *p, enum op_id f, struct node *x) {
  return build_broadcast(p->g, build_reduce(p->g, f, x, 1u << 3), &p->scores, (const int64_t[]){0, 1, 2});
}

/* Which scores count; NULL: all. */
static struct node *visible(const struct plain *p, const struct node *n) {
  struct type t = type_with_dtype(p->scores, DT_BOOL), line = {.dtype = DT_I64, .rank = 2};
  const struct node *mask = mask_of(n);
  struct node *sees = mask ? build_broadcast_to(p->g, (struct node *)(uintptr_t)mask, &t) : NULL;
  if (!node_int_or(n, ATTR_causal, 0)) return sees;
  line.dim[0] = t.dim[2], line.dim[1] = t.dim[3];
  struct node *i = build_iota(p->g, &line, 0), *j = build_iota(p->g, &line, 1);
  struct node *past = build_broadcast(p->g, build2(p->g, OP_ge, i, j), &t, (const int64_t[]){2, 3});
  return sees ? build2(p->g, OP_and, sees, past) : past;
}

static struct node *softmax(const struct plain *p, const struct node *n, struct node *q, struct node *k) {
  struct graph *g = p->g;
  struct node *s = scaled(p, build_matmul(g, q, k, false, true)), *sees = visible(p, n);
  struct node *nothing = build_fill(g, &p->scores, -(double)INFINITY), *zero = build_fill(g, &p->scores, 0);
  if (sees) s = build3(g, OP_select, sees, s, nothing);
  struct node *top = over_row(p, OP_reduce_max, s);
  top = build3(g, OP_select, build2(g, OP_eq, top, nothing), zero, top);
  struct node *e = build1(g, OP_exp, build2(g, OP_sub, s, top)), *sum = over_row(p, OP_reduce_sum, e);
  struct node *one = build_fill(g, &p->scores, 1);
  return build2(g, OP_div, e, build3(g, OP_select, build2(g, OP_eq, sum, zero), one, sum));
}

/* One number for each row of scores, times x. */
static struct node *times_rows(const struct plain *p, struct node *rows, struct node *x) {
  struct node *r = build_broadcast(p->g, rows, &x->type, (const int64_t[]){0, 1, 2});
  return build2(p->g, OP_mul, r, x);
}

/* With g = dy v' - rows of dy . y, ds = p * g: dq = scale ds k, dk = scale ds' q, dv = p' dy. a, b and c are what
 * comes back to these three. */
static void gradient_grad(struct grad *c, const struct node *n, struct node *back) {
  struct graph *g = c->g;
  struct node *x[5], *abc[3];
  int64_t begin = 0;
  for (int i = Q; i <= DY; i++) x[i] = heads_first(g, n->inputs[i]);
  for (int i = Q; i <= V; i++) abc[i] = heads_first(g, piece(g, back, &begin, n->inputs[i]));
  struct plain p = {.g = g, .scores = x[Q]->type, .scale = 1 / sqrt((double)x[Q]->type.dim[3])};
  p.scores.dim[3] = x[K]->type.dim[2];
  struct node *w = p.weights = softmax(&p, n, x[Q], x[K]);
  struct node *dots = build_reduce(g, OP_reduce_sum, build2(g, OP_mul, x[DY], x[Y]), 1u << 3);
  struct node *gap = build2(g, OP_sub, build_matmul(g, x[DY], x[V], false, true),
                            build_broadcast(g, dots, &p.scores, (const int64_t[]){0, 1, 2}));
  struct node *ds = scaled(&p, build2(g, OP_mul, w, gap));
  struct node *of_a = build_matmul(g, abc[Q], x[K], false, true);
  struct node *of_b = build_matmul(g, x[Q], abc[K], false, true);
  struct node *to_ds = scaled(&p, build2(g, OP_add, of_a, of_b)), *to_gap = build2(g, OP_mul, w, to_ds);
  struct node *of_c = build_matmul(g, x[DY], abc[V], false, true);
  struct node *to_w = build2(g, OP_add, build2(g, OP_mul, to_ds, gap), of_c);
  struct node *mean = over_row(&p, OP_reduce_sum, build2(g, OP_mul, w, to_w));
  struct node *to_s = scaled(&p, build2(g, OP_mul, w, build2(g, OP_sub, to_w, mean)));
  struct node *to_dots = build1(g, OP_neg, build_reduce(g, OP_reduce_sum, to_gap, 1u << 3));
  struct node *dq = build_matmul(g, ds, abc[K], false, false), *dk = build_matmul(g, ds, abc[Q], true, false);
  dq = build2(g, OP_add, dq, build_matmul(g, to_s, x[K], false, false));
  dk = build2(g, OP_add, dk, build_matmul(g, to_s, x[Q], true, false));
  struct node *dv = build_matmul(g, to_gap, x[DY], true, false), *dy = times_rows(&p, to_dots, x[DY]);
  struct node *ddy = build_matmul(g, w, abc[V], false, false);
  ddy = build2(g, OP_add, ddy, build_matmul(g, to_gap, x[V], false, false));
  ddy = build2(g, OP_add, ddy, times_rows(&p, to_dots, x[Y]));
  struct node *const all[] = {dq, dk, dv, dy, ddy};
  for (int i = Q; i <= DY; i++) grad_add(c, n, i, heads_first(g, all[i]));
}

/* ---- figures ---- */

static int64_t products_flops(const struct node *n, int64_t products) {
  struct attention s = attention_of(n);
  const int64_t factors[] = {s.batch, s.heads, s.queries, s.keys, s.size + s.values};
  return spatial_product(products, sizeof factors / sizeof *factors, factors) / (s.causal ? 2 : 1);
}
static int64_t attention_flops(const struct node *n) { return products_flops(n, 2); }
static int64_t gradient_flops(const struct node *n) { return products_flops(n, 5); }

/* Rows of queries, of keys, heads, their size: "16x64 of 64 4x32 causal". */
static void attention_sizes(struct str *s, const struct node *n) {
  struct attention a = attention_of(n);
  str_printf(s, "%lldx%lld of %lld %lldx%lld", (long long)a.batch, (long long)a.queries, (long long)a.keys,
             (long long)a.heads, (long long)a.size);
  if (a.values != a.size) str_printf(s, " to %lld", (long long)a.values);
  str_put(s, a.causal ? " causal" : "");
  str_put(s, a.masked ? " masked" : "");
}

/* A block of a GPU for 16 rows of a head. */
static int64_t attention_numbers(const struct node *n, int64_t *out) {
  struct attention s = attention_of(n);
  _Static_assert(sizeof s <= MAX_LEAF_NUMBERS * sizeof *out, "its numbers are a leaf's");
  memcpy(out, &s, sizeof s);
  const int64_t tiles[] = {s.batch, s.heads, blocks_of(s.queries, 16)};
  return spatial_product(BLOCK_THREADS, 3, tiles);
}

/* A block for each head. */
static int64_t gradient_numbers(const struct node *n, int64_t *out) {
  struct attention s = attention_of(n);
  attention_numbers(n, out);
  return spatial_product(BLOCK_THREADS, 2, (const int64_t[]){s.batch, s.heads});
}

/* ---- values ---- */

/* e^x: 2^n e^r, e^r the first terms of its series. The math library's has other bits elsewhere. */
static double exp_of(double x) {
  static const double high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b39p-40, per_two = 0x1.71547652b82fep+0;
  if (!(x > -746)) return x != x ? x : 0;
  if (x > 710) return (double)INFINITY;
  double n = rint(x * per_two), r = x - n * high - n * low, y = 1;
  for (int i = 14; i > 0; i--) y = 1 + y * r / i;
  return ldexp(y, (int)n);
}

static double number_at(const struct tensor *t, int64_t at) {
  return t->type.dtype == DT_F32 ? (double)((const float *)t->data)[at] : ((const double *)t->data)[at];
}

static void put_number(struct tensor *t, int64_t at, double x) {
  if (t->type.dtype == DT_F32)
    ((float *)t->data)[at] = (float)x;
  else
    ((double *)t->data)[at] = x;
}

/* Where row i of head h of row b of the batch begins, in a tensor [B, length, heads, size]. */
static int64_t row_at(const struct attention *s, int64_t length, int64_t size, int64_t b, int64_t h,
                      int64_t i) {
  return ((b * length + i) * s->heads + h) * size;
}

struct head_values {
  const struct attention *s;
  const struct tensor *in;
  const uint8_t *mask;
  int64_t b, h;
};

static bool is_seen(const struct head_values *x, int64_t i, int64_t j) {
  const int64_t *step = x->s->mask_step;
  if (x->s->causal && j > i) return false;
  return !x->mask || x->mask[x->b * step[0] + x->h * step[1] + i * step[2] + j * step[3]];
}

static double dot(const struct tensor *x, int64_t at_x, const struct tensor *y, int64_t at_y, int64_t size) {
  double sum = 0;
  for (int64_t d = 0; d < size; d++) sum += number_at(x, at_x + d) * number_at(y, at_y + d);
  return sum;
}

/* Infinite where it is beyond its type. */
static double score(const struct head_values *x, int64_t i, int64_t j) {
  const struct attention *s = x->s;
  int64_t q = row_at(s, s->queries, s->size, x->b, x->h, i), k = row_at(s, s->keys, s->size, x->b, x->h, j);
  double exact = dot(&x->in[Q], q, &x->in[K], k, s->size) / sqrt((double)s->size);
  return x->in[Q].type.dtype == DT_F32 && isinf((float)exact) ? (double)(float)exact : exact;
}

/* Of the scores that row i sees: the greatest, and the sum of e^(score - top); top -Inf: none counts. */
struct row_sum {
  double top, sum;
};

static struct row_sum sum_row(const struct head_values *x, int64_t i) {
  struct row_sum r = {-(double)INFINITY, 0};
  for (int64_t j = 0; j < x->s->keys; j++)
    if (is_seen(x, i, j)) {
      double v = score(x, i, j);
      if (v > r.top || v != v) r.top = v;
    }
  if (r.top == -(double)INFINITY) return r;
  for (int64_t j = 0; j < x->s->keys; j++)
    if (is_seen(x, i, j)) r.sum += exp_of(score(x, i, j) - r.top);
  return r;
}

static double weight(const struct head_values *x, struct row_sum r, int64_t i, int64_t j) {
  return exp_of(score(x, i, j) - r.top) / r.sum;
}

static const uint8_t *mask_data(const struct node *n, const struct tensor *in) {
  return mask_of(n) ? in[n->op == OP_attention ? MASK : GRADIENT_MASK].data : NULL;
}

enum { CHUNK = 32 };

/* Some of the values of row i, from `first` on: sums in f64, rounded once. */
static void eval_row(const struct head_values *x, int64_t i, int64_t first, int64_t count,
                     struct tensor *out) {
  const struct attention *s = x->s;
  struct row_sum r = sum_row(x, i);
  double sums[CHUNK] = {0};
  for (int64_t j = 0; j < s->keys && r.top != -(double)INFINITY; j++) {
    if (!is_seen(x, i, j)) continue;
    double p = weight(x, r, i, j);
    int64_t v = row_at(s, s->keys, s->values, x->b, x->h, j) + first;
    for (int64_t d = 0; d < count; d++) sums[d] += p * number_at(&x->in[V], v + d);
  }
  int64_t y = row_at(s, s->queries, s->values, x->b, x->h, i) + first;
  for (int64_t d = 0; d < count; d++) put_number(out, y + d, sums[d]);
}

static void attention_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct attention s = attention_of(n);
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; row++)
    for (int64_t d = 0; d < s.values; d += CHUNK) {
      struct head_values x = {&s, in, mask_data(n, in), row / s.queries / s.heads, row / s.queries % s.heads};
      eval_row(&x, row % s.queries, d, s.values - d < CHUNK ? s.values - d : CHUNK, out);
    }
}

static void add_to(struct tensor *out, int64_t at, double v) { put_number(out, at, number_at(out, at) + v); }

/* What row i adds to the derivatives, rounded as it is added; `at` is where those of q, k and v begin. */
static void add_row(const struct head_values *x, int64_t i, const int64_t *at, struct tensor *out) {
  const struct attention *s = x->s;
  struct row_sum r = sum_row(x, i);
  int64_t q = row_at(s, s->queries, s->size, 0, x->h, i);
  int64_t y = row_at(s, s->queries, s->values, x->b, x->h, i);
  double dots = dot(&x->in[DY], y, &x->in[Y], y, s->values), scale = 1 / sqrt((double)s->size);
  for (int64_t j = 0; j < s->keys && r.top != -(double)INFINITY; j++) {
    if (!is_seen(x, i, j)) continue;
    int64_t k = row_at(s, s->keys, s->size, 0, x->h, j), v = row_at(s, s->keys, s->values, 0, x->h, j);
    int64_t row_q = x->b * s->queries * s->heads * s->size, row_k = x->b * s->keys * s->heads * s->size;
    int64_t row_v = x->b * s->keys * s->heads * s->values;
    double p = weight(x, r, i, j), g = dot(&x->in[DY], y, &x->in[V], row_v + v, s->values) - dots;
    for (int64_t d = 0; d < s->size; d++) {
      add_to(out, at[Q] + q + d, scale * p * g * number_at(&x->in[K], row_k + k + d));
      add_to(out, at[K] + k + d, scale * p * g * number_at(&x->in[Q], row_q + q + d));
    }
    for (int64_t d = 0; d < s->values; d++) add_to(out, at[V] + v + d, p * number_at(&x->in[DY], y + d));
  }
}

static void gradient_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct attention s = attention_of(n);
  for (int64_t e = 0; e < type_count(&n->type); e++) put_number(out, e, 0);
  for (int64_t b = 0; b < s.batch; b++) {
    int64_t at[3] = {b * n->type.dim[1]};
    for (int i = K; i <= V; i++) at[i] = at[i - 1] + row_count(&n->inputs[i - 1]->type);
    for (int64_t h = 0; h < s.heads; h++)
      for (int64_t i = 0; i < s.queries; i++) {
        struct head_values x = {&s, in, mask_data(n, in), b, h};
        add_row(&x, i, at, out);
      }
  }
}

const struct op_info op_attention = {.name = "attention",
                                     .kind = KIND_LEAF,
                                     .dtypes = DTYPE_CUSTOM,
                                     .min_inputs = 3,
                                     .max_inputs = 4,
                                     .optional_attrs = ATTR_BIT(causal),
                                     .linear = 1 << V,
                                     .roles = {"q", "k", "v", "mask"},
                                     .domain = DOMAIN_ANY,
                                     .infer = attention_infer,
                                     .grad = attention_grad,
                                     .flops = attention_flops,
                                     .eval = attention_eval,
                                     .sizes = attention_sizes,
                                     .numbers = attention_numbers};

const struct op_info op_attention_gradient = {.name = "attention_gradient",
                                              .kind = KIND_LEAF,
                                              .dtypes = DTYPE_CUSTOM,
                                              .min_inputs = 5,
                                              .max_inputs = 6,
                                              .optional_attrs = ATTR_BIT(causal),
                                              .roles = {"q", "k", "v", "y", "dy", "mask"},
                                              .domain = DOMAIN_ANY,
                                              .infer = gradient_infer,
                                              .grad = gradient_grad,
                                              .flops = gradient_flops,
                                              .eval = gradient_eval,
                                              .sizes = attention_sizes,
                                              .numbers = gradient_numbers};

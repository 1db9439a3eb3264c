/* SPDX-License-Identifier: Apache-2.0 */
/* matmul: products of matrices.
 *
 * The order of a product of floats, which `eval` and so the interpreter has, and CPUs but for their units for bf16: an
 * element is a sum over k of what PRODUCT_PIECE successive ones give, each piece one chain of fused multiply-adds from
 * +0 over ascending k; pieces are added up as a binary tree, whose left half is as many of them as a power of two.
 * So the bits of an element depend on its row of op(a) and its column of op(b) alone: not on m, n or the batch, not on
 * who computes it, with how many lanes, in which blocks or on how many threads. */
#include "ir/graph/build.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"

#include <math.h>
#include <string.h>

/* NULL: f32. */
static const char *precision_of(const struct node *n) {
  const struct attr *a = node_attr(n, ATTR_precision);
  return a ? a->string : NULL;
}

static bool precision_infer(const struct node *n, struct arena *a, const char **why) {
  const char *precision = precision_of(n);
  if (!precision) return true;
  if (n->inputs[0]->type.dtype == DT_F32) return true;
  *why = arena_printf(a, "a product of precision %s has operands of f32, not %s", precision,
                      type_text(a, &n->inputs[0]->type));
  return false;
}

/* matmul: a [..., M, K] and b [..., K, N] give [..., M, N]; transpose_a, transpose_b swap the last two axes of an
 * operand before. The leading axes are equal. precision "bf16" is a promise: all elements of both operands are
 * bfloat16 values, none of them subnormal. The product of two such is exact in f32, so a backend may multiply in
 * bfloat16 units that add up in f32, and no product of elements changes. */
static bool matmul_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *l = &n->inputs[0]->type, *r = &n->inputs[1]->type;
  bool ta = node_int_or(n, ATTR_transpose_a, 0), tb = node_int_or(n, ATTR_transpose_b, 0);
  bool ok = l->rank >= 2 && l->rank == r->rank;
  for (int i = 0; ok && i < l->rank - 2; i++) ok = l->dim[i] == r->dim[i];
  if (!ok) {
    *why = arena_printf(
        a, "matmul needs two operands of equal rank, at least 2, with equal leading axes: %s @ %s",
        type_text(a, l), type_text(a, r));
    return false;
  }
  if (!precision_infer(n, a, why)) return false;
  if (l->dtype == DT_BF16) out->dtype = DT_F32;
  int rank = l->rank;
  int64_t k = l->dim[rank - 1 - ta], k2 = r->dim[rank - 2 + tb];
  if (k != k2) {
    *why = arena_printf(a, "matmul needs equal inner dimensions: %s%s @ %s%s", type_text(a, l),
                        ta ? " transposed" : "", type_text(a, r), tb ? " transposed" : "");
    return false;
  }
  struct type t = type_with_dtype(*l, out->dtype);
  t.dim[rank - 2] = l->dim[rank - 2 + ta];
  t.dim[rank - 1] = r->dim[rank - 1 - tb];
  *out = t;
  return true;
}

/* x is the transpose of its operand in the last two axes, and of nothing else. */
static bool swaps_last_two(const struct node *x) {
  if (!node_is(x, OP_transpose)) return false;
  int rank;
  const int64_t *perm = node_ints(x, ATTR_perm, &rank);
  for (int i = 0; i < rank - 2; i++)
    if (perm[i] != i) return false;
  return rank >= 2 && perm[rank - 2] == rank - 1;
}

static struct node *matmul_fold(struct graph *g, const struct node *n) {
  struct node *a = n->inputs[0], *b = n->inputs[1];
  bool ta = node_int_or(n, ATTR_transpose_a, 0), tb = node_int_or(n, ATTR_transpose_b, 0);
  if (!swaps_last_two(a) && !swaps_last_two(b)) return NULL;
  if (swaps_last_two(a)) a = a->inputs[0], ta = !ta;
  if (swaps_last_two(b)) b = b->inputs[0], tb = !tb;
  return build_matmul_in(g, a, b, ta, tb, precision_of(n));
}

/* y = op(a) op(b): d op(a) = dy op(b)', d op(b) = op(a)' dy, each written without a transpose of its own. In bf16
 * dy is rounded too, so that these products keep the promise. */
static void matmul_grad(struct grad *c, const struct node *n, struct node *dy) {
  struct graph *g = c->g;
  const char *in = precision_of(n);
  struct node *a = n->inputs[0], *b = n->inputs[1];
  bool ta = node_int_or(n, ATTR_transpose_a, 0), tb = node_int_or(n, ATTR_transpose_b, 0);
  if (in) dy = build1(g, OP_round_bf16, dy);
  grad_add(c, n, 0, ta ? build_matmul_in(g, b, dy, tb, true, in) : build_matmul_in(g, dy, b, false, !tb, in));
  grad_add(c, n, 1, tb ? build_matmul_in(g, dy, a, true, ta, in) : build_matmul_in(g, a, dy, !ta, false, in));
}

static int64_t matmul_flops(const struct node *n) {
  const struct type *l = &n->inputs[0]->type;
  return 2 * type_count(&n->type) * l->dim[l->rank - 1 - node_int_or(n, ATTR_transpose_a, 0)];
}

struct product product_of(const struct node *n) {
  const struct type *a = &n->inputs[0]->type, *c = &n->type;
  struct product p = {.dtype = n->type.dtype, .batch = 1};
  p.transpose_a = node_int_or(n, ATTR_transpose_a, 0) != 0;
  p.transpose_b = node_int_or(n, ATTR_transpose_b, 0) != 0;
  p.stored = a->dtype == DT_BF16;
  p.bf16 = p.stored || node_attr(n, ATTR_precision) != NULL;
  p.m = c->dim[c->rank - 2];
  p.n = c->dim[c->rank - 1];
  p.k = a->dim[a->rank - (p.transpose_a ? 2 : 1)];
  for (int i = 0; i + 2 < c->rank; i++) p.batch *= c->dim[i];
  return p;
}

static void matmul_sizes(struct str *s, const struct node *n) {
  struct product p = product_of(n);
  if (p.batch != 1) str_printf(s, "%lldx", (long long)p.batch);
  str_printf(s, "%lldx%lldx%lld%s%s%s", (long long)p.m, (long long)p.n, (long long)p.k,
             p.transpose_a ? " ta" : "", p.transpose_b ? " tb" : "", p.bf16 ? " bf16" : "");
}

/* Integers wrap. */
#define MULTIPLY(T, SUM)                                                                             \
  do {                                                                                               \
    T *c = out->data;                                                                                \
    const T *x = in[0].data, *y = in[1].data;                                                        \
    for (int64_t batch = 0; batch < p.batch; batch++)                                                \
      for (int64_t i = 0; i < p.m; i++)                                                              \
        for (int64_t j = 0; j < p.n; j++) {                                                          \
          int64_t a = batch * p.m * p.k + i * row_a, b = batch * p.k * p.n + j * column_b;           \
          SUM sum = 0;                                                                               \
          for (int64_t l = 0; l < p.k; l++) sum += (SUM)x[a + l * column_a] * (SUM)y[b + l * row_b]; \
          *c++ = (T)sum;                                                                             \
        }                                                                                            \
  } while (0)

/* A row of op(a) and a column of op(b): of each the first element, and how far apart they lie. */
struct vectors {
  const struct tensor *in;
  int64_t a, step_a, b, step_b;
};

/* One piece: a chain of fused multiply-adds. */
#define CHAIN(T, FMA)                                                                       \
  T sum = 0;                                                                                \
  const T *a = (const T *)v->in[0].data + v->a, *b = (const T *)v->in[1].data + v->b;       \
  for (int64_t l = begin; l < end; l++) sum = FMA(a[l * v->step_a], b[l * v->step_b], sum); \
  return sum;

static float f32_chain(const struct vectors *v, int64_t begin, int64_t end) { CHAIN(float, fmaf) }
static double f64_chain(const struct vectors *v, int64_t begin, int64_t end) { CHAIN(double, fma) }

static float stored_chain(const struct vectors *v, int64_t begin, int64_t end) {
  float sum = 0;
  for (int64_t l = begin; l < end; l++)
    sum = fmaf(bf16_at(&v->in[0], v->a + l * v->step_a), bf16_at(&v->in[1], v->b + l * v->step_b), sum);
  return sum;
}

/* The sum of all from `begin` on: that of the left half, and of the rest. */
#define DEFINE_SUM(name, T, chain)                                     \
  static T name(const struct vectors *v, int64_t begin, int64_t end) { \
    int64_t half = PRODUCT_PIECE;                                      \
    if (end - begin <= half) return chain(v, begin, end);              \
    while (2 * half < end - begin) half *= 2;                          \
    T low = name(v, begin, begin + half);                              \
    return low + name(v, begin + half, end);                           \
  }

DEFINE_SUM(f32_sum, float, f32_chain)
DEFINE_SUM(f64_sum, double, f64_chain)
DEFINE_SUM(stored_sum, float, stored_chain)

static void matmul_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct product p = product_of(n);
  int64_t row_a = p.transpose_a ? 1 : p.k, column_a = p.transpose_a ? p.m : 1;
  int64_t row_b = p.transpose_b ? 1 : p.n, column_b = p.transpose_b ? p.k : 1;
  for (int64_t e = 0; dtype_is_float(p.dtype) && e < type_count(&n->type); e++) {
    int64_t batch = e / (p.m * p.n), i = e / p.n % p.m, j = e % p.n;
    struct vectors v = {in, batch * p.m * p.k + i * row_a, column_a, batch * p.k * p.n + j * column_b, row_b};
    if (p.dtype == DT_F64)
      ((double *)out->data)[e] = f64_sum(&v, 0, p.k);
    else
      ((float *)out->data)[e] = p.stored ? stored_sum(&v, 0, p.k) : f32_sum(&v, 0, p.k);
  }
  switch (p.dtype) {
  case DT_I32: MULTIPLY(uint32_t, uint32_t); break;
  case DT_I64: MULTIPLY(uint64_t, uint64_t); break;
  case DT_U8: MULTIPLY(uint8_t, uint32_t); break;
  case DT_F32:
  case DT_F64:
  case DT_BOOL:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
}

const struct op_info op_matmul = {.name = "matmul",
                                  .kind = KIND_LEAF,
                                  .dtypes = DTYPE_NUMBER,
                                  .traits = OP_TAKES_BF16,
                                  .min_inputs = 2,
                                  .max_inputs = 2,
                                  .optional_attrs =
                                      ATTR_BIT(transpose_a) | ATTR_BIT(transpose_b) | ATTR_BIT(precision),
                                  .linear = 3,
                                  .roles = {"lhs", "rhs"},
                                  .domain = DOMAIN_ANY,
                                  .infer = matmul_infer,
                                  .fold = matmul_fold,
                                  .grad = matmul_grad,
                                  .flops = matmul_flops,
                                  .eval = matmul_eval,
                                  .sizes = matmul_sizes};

/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: some axes disappear. The reduced axes are `axes` (ascending), or the one `axis` of argmax, argmin. */
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

static bool reduce_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type;
  int naxes;
  const int64_t *axes = node_ints(n, ATTR_axes, &naxes);
  uint32_t gone = 0;
  (void)a, (void)why;
  for (int i = 0; i < naxes; i++) gone |= 1u << axes[i];
  struct type t = {.dtype = x->dtype};
  for (int i = 0; i < x->rank; i++)
    if (!(gone >> i & 1)) t.dim[t.rank++] = x->dim[i];
  *out = t;
  return true;
}

static uint32_t axis_mask(const struct node *n) {
  int count;
  const int64_t *axes = node_ints(n, ATTR_axes, &count);
  uint32_t mask = 0;
  for (int i = 0; i < count; i++) mask |= 1u << axes[i];
  return mask;
}

/* Of the axes that stay, the operand's. */
static int kept_axis(uint32_t gone, int axis) {
  int i = 0;
  for (;; i++)
    if (!(gone >> i & 1) && axis-- == 0) return i;
}
static int reduce_along(const struct node *n, int axis) { return kept_axis(axis_mask(n), axis); }

/* y, or its gradient, in the shape of the operand. */
static struct node *spread(struct graph *g, const struct node *n, struct node *y) {
  int64_t axes[MAX_RANK];
  uint32_t gone = axis_mask(n);
  int k = 0;
  for (int i = 0; i < n->inputs[0]->type.rank; i++)
    if (!(gone >> i & 1)) axes[k++] = i;
  return build_broadcast(g, y, &n->inputs[0]->type, axes);
}

static struct node *reduce_fold(struct graph *g, const struct node *n) {
  (void)g;
  return n->type.rank == n->inputs[0]->type.rank ? n->inputs[0] : NULL;
}

/* The sum over axes that a broadcast has just made is a product; a sum of a sum is one sum. */
static struct node *sum_fold(struct graph *g, const struct node *n) {
  struct node *x = n->inputs[0], *same = reduce_fold(g, n);
  if (same) return same;
  uint32_t gone = axis_mask(n);
  if (node_is(x, OP_broadcast)) {
    int count;
    const int64_t *axes = node_ints(x, ATTR_axes, &count);
    uint32_t kept = 0;
    for (int i = 0; i < count; i++) kept |= 1u << axes[i];
    bool counts = false;
    for (int i = 0; i < x->type.rank; i++) counts |= (gone >> i & 1) && x->type.dim[i] < 0;
    /* Each tower adds its own as often as it has rows: a share of a sum, which it stays. */
    if (counts && (x->inputs[0]->own || g->step)) return NULL;
    if (n->dist == DIST_PARTIAL && x->inputs[0]->dist == DIST_PER_REPLICA) return NULL;
    if ((gone & kept) == 0) {
      for (int i = 0; i < x->type.rank; i++) /* no times infinity would not be 0 */
        if ((gone >> i & 1) && x->type.dim[i] == 0) return build_fill(g, &n->type, 0);
      struct node *factor = build_count(g, &x->type, gone, x->type.dtype);
      struct node *y = x->inputs[0];
      if (n->type.rank > 0) {
        /* The axes that stay, renumbered. */
        int64_t stay[MAX_RANK];
        for (int i = 0; i < count; i++) {
          stay[i] = axes[i];
          for (int k = 0; k < axes[i]; k++) stay[i] -= gone >> k & 1;
        }
        y = build_broadcast(g, y, &n->type, stay);
        factor = build_broadcast(g, factor, &n->type, NULL);
      }
      return build2(g, OP_mul, y, factor);
    }
  }
  if (node_is(x, OP_reduce_sum)) {
    uint32_t inner = axis_mask(x), all = inner;
    int k = 0;
    for (int i = 0; i < x->inputs[0]->type.rank; i++) {
      if (inner >> i & 1) continue;
      all |= (gone >> k & 1) << i;
      k++;
    }
    return build_reduce(g, OP_reduce_sum, x->inputs[0], all);
  }
  return NULL;
}

static void sum_grad(struct grad *c, const struct node *n, struct node *dy) {
  grad_add(c, n, 0, spread(c->g, n, dy));
}

/* A piece of x along one axis. */
static struct node *part_of(struct graph *g, struct node *x, int axis, int64_t from, int64_t length) {
  int64_t begin[MAX_RANK] = {0};
  struct type t = x->type;
  begin[axis] = from;
  t.dim[axis] = length;
  return build_slice(g, x, begin, &t);
}

/* x with a 1 behind an axis of odd length. */
static struct node *made_even(struct graph *g, struct node *x, int axis) {
  int64_t low[MAX_RANK] = {0}, high[MAX_RANK] = {0};
  high[axis] = x->type.dim[axis] % 2;
  return build_pad(g, x, low, high, build_scalar(g, x->type.dtype, 1));
}

/* For each element of x the product of dy and of the others of its line. The line is folded: the others of an element
 * of the one half are its partner in the other half, and the others of the two in the half line of products. */
static struct node *times_others(struct graph *g, struct node *x, struct node *dy, int axis) {
  int64_t length = x->type.dim[axis], half = (length + 1) / 2;
  if (length == 1) return dy;
  struct node *even = made_even(g, x, axis);
  struct node *a = part_of(g, even, axis, 0, half), *b = part_of(g, even, axis, half, half);
  struct node *of_both = times_others(g, build2(g, OP_mul, a, b), dy, axis);
  struct node *of_a = build2(g, OP_mul, of_both, b), *of_b = build2(g, OP_mul, of_both, a);
  return part_of(g, build_concat(g, 2, (struct node *[]){of_a, of_b}, axis), axis, 0, length);
}

/* What dy is to elements of the operand: the product of all others, without a division, so that zeros have the right
 * gradients of any order. */
static struct node *product_of_others(struct graph *g, const struct node *n, struct node *dy) {
  struct node *x[MAX_RANK + 1] = {n->inputs[0]};
  int axes[MAX_RANK], count = 0;
  struct type t = n->inputs[0]->type;
  for (int i = 0; i < t.rank; i++) {
    if (!(axis_mask(n) >> i & 1)) continue;
    t.dim[i] = 1;
    axes[count] = i;
    x[count + 1] = build_reshape(g, build_reduce(g, OP_reduce_prod, x[count], 1u << i), &t);
    count++;
  }
  dy = build_reshape(g, dy, &t);
  while (count-- > 0) dy = times_others(g, x[count], dy, axes[count]);
  return dy;
}

/* The same where the batch is among the axes, by division: a zero leaves only its own gradient, the product of what is
 * not zero, unless there is another one; without zeros the others' product is the whole by the element. */
static struct node *quotient_of_others(struct graph *g, const struct node *n, struct node *dy) {
  struct node *x = n->inputs[0];
  struct node *zero = build2(g, OP_eq, x, build_fill(g, &x->type, 0));
  struct node *safe = build3(g, OP_select, zero, build_fill(g, &x->type, 1), x);
  struct node *zeros = build_reduce(g, OP_reduce_sum, build_cast(g, zero, x->type.dtype), axis_mask(n));
  struct node *all = build2(g, OP_mul, dy, build_reduce(g, OP_reduce_prod, safe, axis_mask(n)));
  struct node *none = build_fill(g, &n->type, 0);
  struct node *without = build3(g, OP_select, build2(g, OP_eq, zeros, none), all, none);
  struct node *single = build3(g, OP_select, build2(g, OP_eq, zeros, build_fill(g, &n->type, 1)), all, none);
  struct node *others = build2(g, OP_div, spread(g, n, without), safe);
  return build3(g, OP_select, zero, spread(g, n, single), others);
}

static void prod_grad(struct grad *c, const struct node *n, struct node *dy) {
  const struct type *t = &n->inputs[0]->type;
  bool symbolic = false, empty = false;
  for (int i = 0; i < t->rank; i++) {
    symbolic |= (axis_mask(n) >> i & 1) && t->dim[i] < 0;
    empty |= t->dim[i] == 0;
  }
  grad_add(c, n, 0,
           empty      ? build_fill(c->g, t, 0)
           : symbolic ? quotient_of_others(c->g, n, dy)
                      : product_of_others(c->g, n, dy));
}

/* Equal extremes share the gradient evenly. */
static void extreme_grad(struct grad *c, const struct node *n, struct node *dy) {
  struct graph *g = c->g;
  struct node *x = n->inputs[0], *y = (struct node *)(uintptr_t)n;
  struct node *hit = build_cast(g, build2(g, OP_eq, x, spread(g, n, y)), x->type.dtype);
  struct node *hits = build_reduce(g, OP_reduce_sum, hit, axis_mask(n));
  grad_add(c, n, 0, build2(g, OP_mul, hit, spread(g, n, build2(g, OP_div, dy, hits))));
}

#define REDUCE(name_, dtypes_, domain_, ...)                          \
  const struct op_info op_reduce_##name_ = {.name = "reduce_" #name_, \
                                            .kind = KIND_REDUCE,      \
                                            .dtypes = dtypes_,        \
                                            .min_inputs = 1,          \
                                            .max_inputs = 1,          \
                                            .attrs = ATTR_BIT(axes),  \
                                            .roles = {"x"},           \
                                            .domain = domain_,        \
                                            .infer = reduce_infer,    \
                                            .along = reduce_along,    \
                                            __VA_ARGS__};

REDUCE(sum, DTYPE_NUMBER, DOMAIN_ANY, .fold = sum_fold, .grad = sum_grad, .linear = 1)
REDUCE(prod, DTYPE_NUMBER, DOMAIN_NONZERO, .fold = reduce_fold, .grad = prod_grad)
REDUCE(max, DTYPE_ANY, DOMAIN_DISTINCT, .fold = reduce_fold, .grad = extreme_grad)
REDUCE(min, DTYPE_ANY, DOMAIN_DISTINCT, .fold = reduce_fold, .grad = extreme_grad)

static bool arg_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type;
  int64_t axis = node_int(n, ATTR_axis);
  (void)a, (void)why;
  struct type t = {.dtype = DT_I32};
  for (int i = 0; i < x->rank; i++)
    if (i != axis) t.dim[t.rank++] = x->dim[i];
  *out = t;
  return true;
}

static int arg_along(const struct node *n, int axis) { return kept_axis(1u << node_int(n, ATTR_axis), axis); }

#define ARG(name_)                                               \
  const struct op_info op_##name_ = {.name = #name_,             \
                                     .kind = KIND_REDUCE,        \
                                     .dtypes = DTYPE_ANY,        \
                                     .traits = OP_NO_GRADIENT,   \
                                     .min_inputs = 1,            \
                                     .max_inputs = 1,            \
                                     .attrs = ATTR_BIT(axis),    \
                                     .roles = {"x"},             \
                                     .domain = DOMAIN_SMALL_INT, \
                                     .infer = arg_infer,         \
                                     .along = arg_along};
ARG(argmax)
ARG(argmin)

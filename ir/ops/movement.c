/* SPDX-License-Identifier: Apache-2.0 */
/* Movement: elements change place, none is computed. Backends turn these into strides and offsets. */
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

#include <string.h>

#define MOVE(name_, traits_, ...)                                    \
  const struct op_info op_##name_ = {.name = #name_,                 \
                                     .kind = KIND_MOVEMENT,          \
                                     .dtypes = DTYPE_ANY,            \
                                     .traits = OP_MOVES | (traits_), \
                                     .min_inputs = 1,                \
                                     .max_inputs = 1,                \
                                     .roles = {"x"},                 \
                                     .domain = DOMAIN_ANY,           \
                                     __VA_ARGS__};

/* ---- reshape: the same elements in row-major order ---- */

static bool reshape_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type;
  out->dtype = x->dtype;
  /* Of no elements the count says nothing of the batch. */
  bool same = type_valid(out) && type_count(out) == type_count(x);
  if (same && type_is_symbolic(out) == type_is_symbolic(x)) return true;
  *why = arena_printf(a, "cannot reshape %s to %s: the number of elements differs", type_text(a, x),
                      type_text(a, out));
  return false;
}
static struct node *reshape_fold(struct graph *g, const struct node *n) {
  struct node *x = n->inputs[0];
  if (shape_equal(&x->type, &n->type)) return x;
  if (node_is(x, OP_reshape)) return build_reshape(g, x->inputs[0], &n->type);
  if (node_is(x, OP_constant)) return build_constant(g, &n->type, node_attr(x, ATTR_value)->data);
  return NULL;
}
static void reshape_grad(struct grad *c, const struct node *n, struct node *dy) {
  grad_add(c, n, 0, build_reshape(c->g, dy, &n->inputs[0]->type));
}
MOVE(reshape, OP_TYPED | OP_TAKES_NARROW, .infer = reshape_infer, .fold = reshape_fold, .grad = reshape_grad,
     .linear = 1, .view = view_of_all)

/* ---- transpose: output axis i is input axis perm[i] ---- */

static bool transpose_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type;
  int count;
  const int64_t *perm = node_ints(n, ATTR_perm, &count);
  struct type t = {.dtype = x->dtype, .rank = x->rank};
  (void)a, (void)why;
  for (int i = 0; i < count; i++) t.dim[i] = x->dim[perm[i]];
  *out = t;
  return true;
}
static struct node *transpose_fold(struct graph *g, const struct node *n) {
  struct node *x = n->inputs[0];
  int count;
  const int64_t *perm = node_ints(n, ATTR_perm, &count);
  bool same = true;
  for (int i = 0; i < count; i++) same &= perm[i] == i;
  if (same) return x;
  if (node_is(x, OP_transpose)) {
    const int64_t *first = node_ints(x, ATTR_perm, &count);
    int64_t both[MAX_RANK];
    for (int i = 0; i < count; i++) both[i] = first[perm[i]];
    return build_transpose(g, x->inputs[0], both);
  }
  return NULL;
}
static void transpose_grad(struct grad *c, const struct node *n, struct node *dy) {
  int count;
  const int64_t *perm = node_ints(n, ATTR_perm, &count);
  int64_t back[MAX_RANK] = {0};
  for (int i = 0; i < count; i++) back[perm[i]] = i;
  grad_add(c, n, 0, build_transpose(c->g, dy, back));
}
MOVE(transpose, OP_STRIDED, .attrs = ATTR_BIT(perm), .infer = transpose_infer, .fold = transpose_fold,
     .grad = transpose_grad, .linear = 1)

/* ---- broadcast: axis i of x becomes axis axes[i]; all other axes repeat it ---- */

static bool broadcast_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type;
  int count;
  const int64_t *axes = node_ints(n, ATTR_axes, &count);
  out->dtype = x->dtype;
  bool ok = true;
  for (int i = 0; ok && i < count; i++) ok = out->dim[axes[i]] == x->dim[i];
  if (!ok) *why = arena_printf(a, "cannot broadcast %s to %s", type_text(a, x), type_text(a, out));
  return ok;
}
static struct node *broadcast_fold(struct graph *g, const struct node *n) {
  struct node *x = n->inputs[0];
  if (n->type.rank == x->type.rank) return x;
  if (node_is(x, OP_broadcast)) {
    int count;
    const int64_t *outer = node_ints(n, ATTR_axes, &count), *inner = node_ints(x, ATTR_axes, &count);
    int64_t both[MAX_RANK] = {0};
    for (int i = 0; i < count; i++) both[i] = outer[inner[i]];
    return build_broadcast(g, x->inputs[0], &n->type, both);
  }
  return NULL;
}
static int broadcast_along(const struct node *n, int axis) {
  int count;
  const int64_t *axes = node_ints(n, ATTR_axes, &count);
  for (int i = 0; i < count; i++)
    if (axes[i] == axis) return i;
  return ALONG_NONE;
}
static void broadcast_grad(struct grad *c, const struct node *n, struct node *dy) {
  int count;
  const int64_t *axes = node_ints(n, ATTR_axes, &count);
  uint32_t made = (1u << n->type.rank) - 1;
  for (int i = 0; i < count; i++) made &= ~(1u << axes[i]);
  grad_add(c, n, 0, build_reduce(c->g, OP_reduce_sum, dy, made));
}
MOVE(broadcast, OP_TYPED | OP_STRIDED, .attrs = ATTR_BIT(axes), .infer = broadcast_infer,
     .fold = broadcast_fold, .grad = broadcast_grad, .linear = 1, .along = broadcast_along)

/* ---- slice: from begin[i], as many as the type says ---- */

static bool slice_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type;
  int count;
  const int64_t *begin = node_ints(n, ATTR_begin, &count);
  out->dtype = x->dtype;
  bool ok = out->rank == x->rank;
  for (int i = 0; ok && i < count; i++) {
    int64_t from = x->dim[i], size = out->dim[i];
    if (from < 0 || size < 0)
      ok = from == size && begin[i] == 0; /* the batch is sliced by replication only */
    else
      ok = begin[i] <= from && size <= from - begin[i];
  }
  if (!ok)
    *why = arena_printf(a, "cannot cut %s out of %s: it reaches outside, or cuts the batch",
                        type_text(a, out), type_text(a, x));
  return ok;
}
static struct node *slice_fold(struct graph *g, const struct node *n) {
  (void)g;
  return type_equal(&n->type, &n->inputs[0]->type) ? n->inputs[0] : NULL;
}
static void slice_grad(struct grad *c, const struct node *n, struct node *dy) {
  const struct type *x = &n->inputs[0]->type;
  int count;
  const int64_t *begin = node_ints(n, ATTR_begin, &count);
  int64_t high[MAX_RANK] = {0};
  for (int i = 0; i < count; i++) high[i] = x->dim[i] < 0 ? 0 : x->dim[i] - begin[i] - n->type.dim[i];
  grad_add(c, n, 0, build_pad(c->g, dy, begin, high, build_scalar(c->g, x->dtype, 0)));
}
/* Whole rows are contiguous. That a piece of a single row is too does not count: batch size 1 is nothing special. */
static bool slice_view(const struct node *n, int64_t *offset) {
  const struct type *from = &n->inputs[0]->type;
  for (int i = 1; i < n->type.rank; i++)
    if (n->type.dim[i] != from->dim[i]) return false;
  int count;
  *offset = n->type.rank ? node_ints(n, ATTR_begin, &count)[0] * type_row_bytes(from) : 0;
  return true;
}
MOVE(slice, OP_TYPED | OP_STRIDED, .attrs = ATTR_BIT(begin), .infer = slice_infer, .fold = slice_fold,
     .grad = slice_grad, .linear = 1, .view = slice_view)

/* ---- pad: `value` around x ---- */

static bool pad_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type;
  int count;
  const int64_t *low = node_ints(n, ATTR_low, &count), *high = node_ints(n, ATTR_high, &count);
  bool ok = n->inputs[1]->type.rank == 0;
  struct type t = *x;
  for (int i = 0; ok && i < x->rank; i++) {
    if (x->dim[i] < 0)
      ok = low[i] == 0 && high[i] == 0;
    else
      ok = dim_add(t.dim[i], low[i], &t.dim[i]) && dim_add(t.dim[i], high[i], &t.dim[i]);
  }
  if (!ok)
    *why =
        arena_printf(a, "pad of %s needs a scalar value, and sizes that are not too large, 0 along the batch",
                     type_text(a, x));
  *out = t;
  return ok;
}
static struct node *pad_fold(struct graph *g, const struct node *n) {
  (void)g;
  return type_equal(&n->type, &n->inputs[0]->type) ? n->inputs[0] : NULL;
}
static void pad_grad(struct grad *c, const struct node *n, struct node *dy) {
  struct graph *g = c->g;
  struct node *x = n->inputs[0];
  int count;
  const int64_t *low = node_ints(n, ATTR_low, &count), *high = node_ints(n, ATTR_high, &count);
  grad_add(c, n, 0, build_slice(g, dy, low, &x->type));
  if (node_is(n->inputs[1], OP_constant)) return;
  struct type flags = type_with_dtype(x->type, DT_BOOL);
  struct node *inside = build_fill(g, &flags, 0);
  struct node *around = build_pad(g, inside, low, high, build_scalar(g, DT_BOOL, 1));
  struct node *outside = build3(g, OP_select, around, dy, build_fill(g, &dy->type, 0));
  grad_add(c, n, 1, build_reduce(g, OP_reduce_sum, outside, (1u << n->type.rank) - 1));
}
const struct op_info op_pad = {.name = "pad",
                               .kind = KIND_MOVEMENT,
                               .dtypes = DTYPE_ANY,
                               .min_inputs = 2,
                               .max_inputs = 2,
                               .attrs = ATTR_BIT(low) | ATTR_BIT(high),
                               .roles = {"x", "value"},
                               .domain = DOMAIN_ANY,
                               .infer = pad_infer,
                               .fold = pad_fold,
                               .grad = pad_grad};

/* ---- concat ---- */

static bool concat_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  struct type t = n->inputs[0]->type;
  int64_t axis = node_int(n, ATTR_axis);
  bool ok = true;
  int i = 1;
  for (; ok && i < n->ninputs; i++) {
    const struct type *x = &n->inputs[i]->type;
    ok = x->rank == t.rank;
    for (int k = 0; ok && k < t.rank; k++)
      ok = k == axis ? (x->dim[k] < 0) == (t.dim[k] < 0) : x->dim[k] == t.dim[k];
    ok = ok && dim_add(t.dim[axis], x->dim[axis], &t.dim[axis]);
  }
  if (!ok)
    *why = arena_printf(a, "cannot join %s and %s along axis %lld", type_text(a, &n->inputs[0]->type),
                        type_text(a, &n->inputs[i > 1 ? i - 1 : 0]->type), (long long)axis);
  *out = t;
  return ok;
}
static struct node *concat_fold(struct graph *g, const struct node *n) {
  (void)g;
  return n->ninputs == 1 ? n->inputs[0] : NULL;
}
static void concat_grad(struct grad *c, const struct node *n, struct node *dy) {
  int64_t axis = node_int(n, ATTR_axis), begin[MAX_RANK] = {0};
  for (int i = 0; i < n->ninputs; i++) {
    const struct type *t = &n->inputs[i]->type;
    grad_add(c, n, i, build_slice(c->g, dy, begin, t));
    begin[axis] += t->dim[axis];
  }
}
const struct op_info op_concat = {.name = "concat",
                                  .kind = KIND_MOVEMENT,
                                  .dtypes = DTYPE_ANY,
                                  .min_inputs = 1,
                                  .max_inputs = -1,
                                  .traits = OP_MOVES,
                                  .attrs = ATTR_BIT(axis),
                                  .linear_jointly = true,
                                  .roles = {"x"},
                                  .domain = DOMAIN_ANY,
                                  .infer = concat_infer,
                                  .fold = concat_fold,
                                  .grad = concat_grad};

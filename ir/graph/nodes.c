/* SPDX-License-Identifier: Apache-2.0 */
/* One builder function per common node: broadcasting, constants, reductions, movement. */
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

#include <string.h>

struct node *build1(struct graph *g, unsigned op, struct node *a) {
  return build(g, op, 1, &a, 0, NULL, NULL);
}

struct node *build2(struct graph *g, unsigned op, struct node *a, struct node *b) {
  return build(g, op, 2, (struct node *[]){a, b}, 0, NULL, NULL);
}

struct node *build3(struct graph *g, unsigned op, struct node *a, struct node *b, struct node *c) {
  return build(g, op, 3, (struct node *[]){a, b, c}, 0, NULL, NULL);
}

struct node *build_constant(struct graph *g, const struct type *t, const void *data) {
  struct attr value = {.key = ATTR_value, .count = (int)type_bytes(t), .data = data};
  return build(g, OP_constant, 0, NULL, 1, &value, t);
}

/* Integers wrap, as a count of elements of u8 does. */
struct node *build_scalar(struct graph *g, enum dtype d, double value) {
  struct type t = type_scalar(d);
  switch (d) {
  case DT_F32: return build_constant(g, &t, &(float){(float)value});
  case DT_F64: return build_constant(g, &t, &value);
  case DT_I32: return build_constant(g, &t, &(int32_t){(int32_t)(int64_t)value});
  case DT_I64: return build_constant(g, &t, &(int64_t){(int64_t)value});
  case DT_U8: return build_constant(g, &t, &(uint8_t){(uint8_t)(int64_t)value});
  case DT_BOOL:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return build_constant(g, &t, &(uint8_t){value != 0});
}

struct node *build_fill(struct graph *g, const struct type *like, double value) {
  return build_broadcast(g, build_scalar(g, like->dtype, value), like, NULL);
}

struct node *build_rounded(struct graph *g, struct node *x, enum dtype d) {
  int op = 0;
  while (op < OP_COUNT && op_table[op]->narrow != d) op++;
  return dtype_is_narrow(d) ? build1(g, (enum op_id)op, x) : x;
}

struct node *build_input(struct graph *g, const char *name, const struct type *t) {
  return build_named(g, name, OP_input, 0, NULL, 0, NULL, t);
}

struct node *build_variable(struct graph *g, const char *name, const struct type *t, bool trainable,
                            const char *slot) {
  struct attr attrs[] = {attr_int(ATTR_trainable, trainable), attr_string(ATTR_slot, slot)};
  return build_named(g, name, OP_variable, 0, NULL, slot ? 2 : 1, attrs, t);
}

struct node *build_cast(struct graph *g, struct node *x, enum dtype d) {
  if (!x) return NULL;
  struct type t = type_with_dtype(x->type, d);
  return build(g, OP_cast, 1, &x, 0, NULL, &t);
}

struct node *build_reshape(struct graph *g, struct node *x, const struct type *t) {
  return build(g, OP_reshape, 1, &x, 0, NULL, t);
}

struct node *build_flat(struct graph *g, struct node *x) {
  if (!x) return NULL;
  struct type t = type_make((enum dtype)x->type.dtype, 1, (int64_t[]){type_count(&x->type)});
  return build_reshape(g, x, &t);
}

struct node *build_transpose(struct graph *g, struct node *x, const int64_t *perm) {
  if (!x) return NULL;
  struct attr a = attr_ints(ATTR_perm, x->type.rank, perm);
  return build(g, OP_transpose, 1, &x, 1, &a, NULL);
}

struct node *build_broadcast(struct graph *g, struct node *x, const struct type *t, const int64_t *axes) {
  if (!x) return NULL;
  struct attr a = attr_ints(ATTR_axes, x->type.rank, axes ? axes : (int64_t[]){0});
  struct type full = type_with_dtype(*t, x->type.dtype);
  return build(g, OP_broadcast, 1, &x, 1, &a, &full);
}

bool broadcast_shape(const struct type *a, const struct type *b, struct type *out) {
  int rank = a->rank > b->rank ? a->rank : b->rank;
  struct type t = {.dtype = a->dtype, .rank = (uint8_t)rank};
  for (int i = 0; i < rank; i++) {
    int ia = i - (rank - a->rank), ib = i - (rank - b->rank);
    int64_t da = ia < 0 ? 1 : a->dim[ia], db = ib < 0 ? 1 : b->dim[ib];
    if (da != db && da != 1 && db != 1) return false;
    t.dim[i] = da == 1 ? db : da;
  }
  *out = t;
  return true;
}

struct node *build_broadcast_to(struct graph *g, struct node *x, const struct type *t) {
  if (!x) return NULL;
  if (shape_equal(&x->type, t)) return x;
  /* Axes of size 1 that stretch are dropped first: a broadcast repeats whole axes only. */
  struct type kept = {.dtype = x->type.dtype};
  int64_t axes[MAX_RANK];
  for (int i = 0; i < x->type.rank; i++) {
    int axis = t->rank - x->type.rank + i;
    if (x->type.dim[i] == 1 && t->dim[axis] != 1) continue;
    axes[kept.rank] = axis;
    kept.dim[kept.rank++] = x->type.dim[i];
  }
  return build_broadcast(g, build_reshape(g, x, &kept), t, axes);
}

struct node *build_reduce(struct graph *g, unsigned op, struct node *x, uint32_t axes) {
  if (!x) return NULL;
  int64_t list[MAX_RANK];
  int n = 0;
  for (int i = 0; i < x->type.rank; i++)
    if (axes >> i & 1) list[n++] = i;
  struct attr a = attr_ints(ATTR_axes, n, list);
  return build(g, op, 1, &x, 1, &a, NULL);
}

struct node *build_arg(struct graph *g, unsigned op, struct node *x, int axis) {
  struct attr a = attr_int(ATTR_axis, axis);
  return build(g, op, 1, &x, 1, &a, NULL);
}

struct node *build_slice(struct graph *g, struct node *x, const int64_t *begin, const struct type *t) {
  if (!x) return NULL;
  struct attr a = attr_ints(ATTR_begin, x->type.rank, begin);
  struct type full = type_with_dtype(*t, x->type.dtype);
  return build(g, OP_slice, 1, &x, 1, &a, &full);
}

struct node *build_pad(struct graph *g, struct node *x, const int64_t *low, const int64_t *high,
                       struct node *value) {
  if (!x) return NULL;
  struct attr a[2] = {attr_ints(ATTR_low, x->type.rank, low), attr_ints(ATTR_high, x->type.rank, high)};
  return build(g, OP_pad, 2, (struct node *[]){x, value}, 2, a, NULL);
}

struct node *build_concat(struct graph *g, int n, struct node *const *x, int axis) {
  struct attr a = attr_int(ATTR_axis, axis);
  return build(g, OP_concat, n, x, 1, &a, NULL);
}

struct node *build_matmul_in(struct graph *g, struct node *a, struct node *b, bool transpose_a,
                             bool transpose_b, const char *precision) {
  struct attr attrs[] = {attr_int(ATTR_transpose_a, transpose_a), attr_int(ATTR_transpose_b, transpose_b),
                         attr_string(ATTR_precision, precision)};
  return build(g, OP_matmul, 2, (struct node *[]){a, b}, precision ? 3 : 2, attrs, NULL);
}

struct node *build_matmul(struct graph *g, struct node *a, struct node *b, bool transpose_a,
                          bool transpose_b) {
  return build_matmul_in(g, a, b, transpose_a, transpose_b, NULL);
}

struct node *build_iota(struct graph *g, const struct type *t, int axis) {
  struct attr a = attr_int(ATTR_axis, axis);
  return build(g, OP_iota, 0, NULL, 1, &a, t);
}

struct node *build_tower_number(struct graph *g, const struct type *t, int64_t number, bool shared) {
  if (!shared) return build_fill(g, t, (double)number);
  struct type line = {.dtype = t->dtype, .rank = 1, .dim = {1}};
  struct attr attrs[] = {attr_int(ATTR_axis, 0), attr_int(ATTR_offset, number)};
  struct node *x = build(g, OP_iota, 0, NULL, number ? 2 : 1, attrs, &line);
  return x ? build_reshape(g, x, t) : NULL;
}

struct node *build_batch_size(struct graph *g, enum dtype d) {
  struct type t = type_scalar(d);
  return build(g, OP_batch_size, 0, NULL, 0, NULL, &t);
}

struct node *build_count(struct graph *g, const struct type *t, uint32_t axes, enum dtype d) {
  double fixed = 1;
  int batches = 0;
  for (int i = 0; i < t->rank; i++)
    if (axes >> i & 1) {
      int64_t dim = t->dim[i];
      batches += dim < 0 || dim_is_whole(dim);
      fixed *= (double)(dim < 0 ? -dim : dim_is_whole(dim) ? dim / DIM_WHOLE : dim);
    }
  struct node *n = build_scalar(g, d, fixed);
  while (batches-- > 0) n = build2(g, OP_mul, n, build_batch_size(g, d));
  return n;
}

struct node *build_random(struct graph *g, unsigned op, const struct type *t, struct node *step, int64_t seed,
                          int64_t stream) {
  struct attr a[2] = {attr_int(ATTR_key, stream), attr_int(ATTR_seed, seed)};
  return build(g, op, 1, &step, 2, a, t);
}

struct node *build_random_rows(struct graph *g, unsigned op, const struct type *t, struct node *step,
                               struct node *row, int64_t width, int64_t seed, int64_t stream) {
  struct attr a[3] = {attr_int(ATTR_key, stream), attr_int(ATTR_seed, seed), attr_int(ATTR_width, width)};
  return build(g, op, 2, (struct node *[]){step, row}, 3, a, t);
}

struct node *build_assign(struct graph *g, struct node *variable, struct node *value) {
  if (!variable) return NULL;
  return build_named(g, arena_printf(g->arena, "%s.update", variable->name), OP_assign, 2,
                     (struct node *[]){variable, value}, 0, NULL, NULL);
}

struct node *build_sum_of_towers(struct graph *g, struct node *x) {
  struct attr attrs[3] = {attr_string(ATTR_reduction, "sum"), attr_int(ATTR_each, 1),
                          attr_int(ATTR_given, 1)};
  return build(g, OP_aggregate, 1, &x, 3, attrs, NULL);
}

struct node *build_gradient(struct graph *g, struct node *loss, struct node *variable) {
  if (!variable) return NULL;
  bool before = g->at.backward;
  g->at.backward = true;
  struct node *n = build_named(g, arena_printf(g->arena, "%s.grad", variable->name), OP_gradient, 2,
                               (struct node *[]){loss, variable}, 0, NULL, NULL);
  if (n) n->gradient_of = variable->name;
  g->at.backward = before;
  return n;
}

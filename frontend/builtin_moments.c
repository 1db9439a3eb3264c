/* SPDX-License-Identifier: Apache-2.0 */
/* moments(x, axis): mean and variance, for which a large x is read once.
 *
 * Both are sums of differences to a point p that is near the mean. With d = x - p they are p + mean(d) and mean(d^2) -
 * mean(d)^2, and the second one loses no more than its share of the first, (mean - p)^2. (Chan, Golub and LeVeque,
 * Algorithms for computing the sample variance, 1983, have what shifted data loses.) p is the mean of one slice in the
 * middle of x, which costs little: as the slice is one of P in x, the variance is at least (mean - p)^2 / (P - 1),
 * whatever x is. So its relative error is at most that of the sums times P, and that of the sums where x is alike
 * everywhere, however far from 0. Without such a slice x is small, or its rows are what is summed, and p is the mean as
 * it is rounded: of many numbers far from 0 it may be off by more than they differ.
 *
 * A p that is no finite number is 0, so that the mean is what it is without differences. Nothing flows back through p,
 * from which neither depends; and the sums that flow back are of one passage, too. A tower's moments are those of its
 * own rows, p too. */
#include "frontend/resolve.h"

#include "ir/ops/op_id.h"

/* The shortest axis for which a slice costs little beside x. */
enum { LEAST_SLICES = 4 };

static struct node *mean_of(struct resolver *r, struct node *x, uint32_t axes) {
  struct node *sum = x ? build_reduce(r->g, OP_reduce_sum, x, axes) : NULL;
  if (!sum) return NULL;
  struct node *count = build_count(r->g, &x->type, axes, (enum dtype)x->type.dtype);
  return build2(r->g, OP_div, sum, build_broadcast_to(r->g, count, &sum->type));
}

/* What has lost `axes`, as often as x has them. */
static struct node *spread_over(struct resolver *r, struct node *y, const struct type *x, uint32_t axes) {
  int64_t kept[MAX_RANK];
  int n = 0;
  for (int i = 0; i < x->rank; i++)
    if (!(axes >> i & 1)) kept[n++] = i;
  return y ? build_broadcast(r->g, y, x, kept) : NULL;
}

/* An axis across which x can be cut and that is long enough, or -1. */
static int axis_of_slices(const struct type *x, uint32_t axes) {
  for (int i = 0; i < x->rank; i++)
    if (axes >> i & 1 && x->dim[i] >= LEAST_SLICES && !dim_is_whole(x->dim[i])) return i;
  return -1;
}

/* The slice in the middle. */
static struct node *middle_of(struct resolver *r, struct node *x, int axis) {
  int64_t begin[MAX_RANK] = {0};
  struct type t = x->type;
  begin[axis] = t.dim[axis] / 2;
  t.dim[axis] = 1;
  return build_slice(r->g, x, begin, &t);
}

static struct node *near_mean(struct resolver *r, struct node *x, uint32_t axes) {
  int axis = axis_of_slices(&x->type, axes);
  struct node *mean = mean_of(r, axis < 0 ? x : middle_of(r, x, axis), axes);
  if (!mean) return NULL;
  struct node *finite = build1(r->g, OP_is_finite, mean);
  mean = build3(r->g, OP_select, finite, mean, build_fill(r->g, &mean->type, 0));
  return mean ? build1(r->g, OP_stop_gradient, mean) : NULL;
}

struct value moments(struct resolver *r, struct node *x, uint32_t axes, struct loc loc) {
  int batch = type_batch_axis(&x->type);
  bool joins = batch >= 0 && axes >> batch & 1;
  struct node *near = near_mean(r, x, axes);
  struct node *apart = near ? build2(r->g, OP_sub, x, spread_over(r, near, &x->type, axes)) : NULL;
  struct node *squares = apart ? mean_of(r, build1(r->g, OP_square, apart), axes) : NULL;
  struct node *rest = mean_of(r, apart, axes);
  struct node *mean = build2(r->g, OP_add, near, rest);
  struct node *variance = build2(r->g, OP_sub, squares, build1(r->g, OP_square, rest));
  variance = build2(r->g, OP_max, variance, variance ? build_fill(r->g, &variance->type, 0) : NULL);
  if (joins) {
    note_statistic(r, mean, x);
    note_statistic(r, variance, x);
  }
  struct value v = {.kind = VALUE_LIST, .at = loc};
  v.list.items = arena_new_array(r->arena, 2, struct value);
  v.list.count = 2;
  v.list.items[0] = value_tensor(r, mean, loc);
  v.list.items[1] = value_tensor(r, variance, loc);
  return list_seal(r, &v, loc) ? v : value_error();
}

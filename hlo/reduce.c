/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions. */
#include "hlo/rules.h"

#include <math.h>

static bool reduce(struct hlo *h, const struct node *n, const char *name, double first, struct hlo_value x,
                   struct hlo_value *out) {
  int count;
  const int64_t *axes = node_ints(n, ATTR_axes, &count);
  struct type t = hlo_type(h, n), scalar = type_scalar((enum dtype)t.dtype);
  *out = hlo_reduce(h, name, x, hlo_number(h, &scalar, first), &t, count, axes);
  return true;
}

bool hlo_reduce_sum(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  return reduce(h, n, "add", 0, in[0], out);
}

bool hlo_reduce_prod(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  return reduce(h, n, "multiply", 1, in[0], out);
}

/* An infinity is the last number of an integer type. */
bool hlo_reduce_max(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  return reduce(h, n, "maximum", n->type.dtype == DT_BOOL ? 0 : -(double)INFINITY, in[0], out);
}

bool hlo_reduce_min(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  return reduce(h, n, "minimum", (double)INFINITY, in[0], out);
}

/* The least place where the extreme is, or a NaN, which no number equals: without one the extreme is a number. */
static bool arg(struct hlo *h, const struct node *n, bool max, struct hlo_value x, struct hlo_value *out) {
  enum dtype d = (enum dtype)x.type.dtype;
  struct type t = hlo_type(h, n), place = type_with_dtype(x.type, DT_I32), scalar = type_scalar(d);
  struct type best_type = type_with_dtype(t, d), number = type_scalar(DT_I32);
  int64_t axis = node_int(n, ATTR_axis), kept[MAX_RANK];
  for (int i = 0, k = 0; i < x.type.rank; i++)
    if (i != axis) kept[k++] = i;
  if (x.type.dim[axis] == 0) {
    *out = hlo_integer(h, &t, 0);
    return true;
  }
  double worst = d == DT_BOOL && max ? 0 : max ? -(double)INFINITY : (double)INFINITY;
  struct hlo_value first = hlo_number(h, &scalar, worst), last = hlo_integer(h, &number, INT32_MAX);
  struct hlo_value best = hlo_reduce(h, max ? "maximum" : "minimum", x, first, &best_type, 1, &axis);
  struct hlo_value hit = hlo_compare(h, "EQ", x, hlo_repeated(h, best, &x.type, t.rank, kept));
  if (dtype_is_float(d)) hit = hlo_binary(h, "or", hit, hlo_compare(h, "NE", x, x));
  struct hlo_value places = hlo_count(h, &place, axis), none = hlo_integer(h, &place, INT32_MAX);
  *out = hlo_reduce(h, "minimum", hlo_select(h, hit, places, none), last, &t, 1, &axis);
  return true;
}

bool hlo_argmax(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  return arg(h, n, true, in[0], out);
}

bool hlo_argmin(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  return arg(h, n, false, in[0], out);
}

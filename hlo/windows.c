/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over spatial axes, see ir/ops/window.c. */
#include "hlo/rules.h"

#include "ir/ops/leaf.h"

#include <math.h>

static void read_numbers(const struct node *n, enum attr_key key, int64_t otherwise, int64_t *out) {
  hlo_spatial(n, key, otherwise, out + 1);
  out[0] = out[n->type.rank - 1] = otherwise;
}

/* Of all axes of x, [B, ..., C]: those of rows and channels are windows of one element. */
static struct hlo_windows windows_on(const struct node *n) {
  struct hlo_windows f = {.rank = n->type.rank};
  read_numbers(n, ATTR_size, 1, f.size);
  read_numbers(n, ATTR_strides, 1, f.stride);
  read_numbers(n, ATTR_kernel_dilation, 1, f.dilation);
  read_numbers(n, ATTR_input_dilation, 1, f.gap);
  read_numbers(n, ATTR_padding_low, 0, f.low);
  read_numbers(n, ATTR_padding_high, 0, f.high);
  return f;
}

bool hlo_window_sum(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  struct hlo_windows f = windows_on(n);
  struct type t = hlo_type(h, n);
  *out = hlo_reduce_windows(h, "add", in[0], 0, &t, &f);
  return true;
}

bool hlo_window_max(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  struct hlo_windows f = windows_on(n);
  struct type t = hlo_type(h, n);
  *out = hlo_reduce_windows(h, "maximum", in[0], -(double)INFINITY, &t, &f);
  return true;
}

/* ---- which element each window chooses ---- */

/* What all windows have at one place: every stride-th element of x, from the place on; x has its padding. */
static struct hlo_value at_place(struct hlo *h, struct hlo_value x, const struct hlo_windows *f,
                                 const int64_t *place, const struct type *windows) {
  struct type t = type_with_dtype(*windows, (enum dtype)x.type.dtype);
  int64_t begin[MAX_RANK], limit[MAX_RANK];
  for (int i = 0; i < f->rank; i++) {
    begin[i] = place[i] * f->dilation[i];
    limit[i] = begin[i] + (t.dim[i] - 1) * f->stride[i] + 1;
  }
  const char *attrs = arena_printf(h->arena, "start_indices = %s, limit_indices = %s, strides = %s",
                                   hlo_array(h->arena, f->rank, begin), hlo_array(h->arena, f->rank, limit),
                                   hlo_array(h->arena, f->rank, f->stride));
  return hlo_op(h, "slice", &t, 1, &x, attrs, NULL);
}

static bool next_place(const struct hlo_windows *f, int64_t *place) {
  int axis = f->rank - 1;
  while (axis >= 0 && ++place[axis] == f->size[axis]) place[axis--] = 0;
  return axis >= 0;
}

/* The number in x of the element that each window chooses, of type [..., 1] as i64; -1: it sees none. An element takes
 * the place of those before it unless they are greater or equal. */
static struct hlo_value chosen(struct hlo *h, const struct hlo_windows *f, struct hlo_value x,
                               const struct type *windows) {
  struct type number = type_with_dtype(x.type, DT_I64), padded = x.type, scalar = type_scalar(DT_I64);
  struct type flat = {.dtype = DT_I64, .rank = 1, .dim = {type_count(&x.type)}},
              one = type_scalar(x.type.dtype);
  struct type choice = type_with_dtype(*windows, DT_I64), value = type_with_dtype(*windows, x.type.dtype);
  for (int i = 0; i < f->rank; i++) padded.dim[i] += f->low[i] + f->high[i];
  struct type padded_numbers = type_with_dtype(padded, DT_I64);
  struct hlo_value none = hlo_integer(h, &scalar, -1), zero = hlo_number(h, &one, 0);
  struct hlo_value numbers = hlo_shaped(h, hlo_count(h, &flat, 0), &number);
  numbers = hlo_padded(h, numbers, none, &padded_numbers, f->low, f->high);
  x = hlo_padded(h, x, zero, &padded, f->low, f->high);
  struct hlo_value best = hlo_number(h, &value, 0), which = hlo_integer(h, &choice, -1), nowhere = which;
  int64_t place[MAX_RANK] = {0};
  do {
    struct hlo_value v = at_place(h, x, f, place, windows), at = at_place(h, numbers, f, place, windows);
    struct hlo_value seen = hlo_compare(h, "NE", at, nowhere), first = hlo_compare(h, "EQ", which, nowhere);
    struct hlo_value beaten = hlo_unary(h, "not", hlo_compare(h, "GE", best, v));
    struct hlo_value take = hlo_binary(h, "and", seen, hlo_binary(h, "or", first, beaten));
    best = hlo_select(h, take, v, best);
    which = hlo_select(h, take, at, which);
  } while (next_place(f, place));
  struct type column = {.dtype = DT_I64, .rank = 2, .dim = {type_count(windows), 1}};
  return hlo_shaped(h, which, &column);
}

bool hlo_window_put(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  struct type t = hlo_type(h, n), flat = {.dtype = t.dtype, .rank = 1, .dim = {type_count(&t)}};
  struct type values = {.dtype = t.dtype, .rank = 1, .dim = {type_count(&in[1].type)}};
  struct hlo_windows f = windows_on(n);
  *out = hlo_number(h, &t, 0);
  if (type_count(&t) == 0 || type_count(&in[1].type) == 0) return true;
  struct hlo_value operands[] = {hlo_shaped(h, *out, &flat), chosen(h, &f, in[0], &in[1].type),
                                 hlo_shaped(h, in[1], &values)};
  const char *attrs =
      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [0], "
      "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, "
      "unique_indices = false";
  struct hlo_value sum =
      hlo_op(h, "scatter", &flat, 3, operands, attrs, hlo_joining(h, "add", (enum dtype)t.dtype));
  *out = hlo_shaped(h, sum, &t);
  return true;
}

bool hlo_window_pick(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  struct type t = hlo_type(h, n), flat = {.dtype = t.dtype, .rank = 1, .dim = {type_count(&in[1].type)}};
  struct type picked = {.dtype = t.dtype, .rank = 1, .dim = {type_count(&t)}};
  struct hlo_windows f = windows_on(n);
  *out = hlo_number(h, &t, 0);
  if (type_count(&t) == 0 || type_count(&in[1].type) == 0) return true;
  struct hlo_value at = chosen(h, &f, in[0], &t);
  struct hlo_value operands[] = {hlo_shaped(h, in[1], &flat), at};
  const char *attrs =
      "dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [0], "
      "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false";
  struct hlo_value y = hlo_shaped(h, hlo_op(h, "gather", &picked, 2, operands, attrs, NULL), &t);
  struct type number = type_with_dtype(t, DT_I64);
  struct hlo_value there = hlo_compare(h, "GE", hlo_shaped(h, at, &number), hlo_integer(h, &number, 0));
  *out = hlo_select(h, there, y, *out);
  return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Products and convolutions. They are asked for at the highest precision, since "default" is bfloat16 on some devices;
 * where the operands hold bfloat16 values only, that is enough. */
#include "hlo/rules.h"

#include "base/integer.h"

#include <string.h>

static const char *precision(struct hlo *h, const struct node *n) {
  const char *how = node_attr(n, ATTR_precision) ? "DEFAULT" : "HIGHEST";
  return arena_printf(h->arena, "precision_config = [#stablehlo<precision %s>, #stablehlo<precision %s>]",
                      how, how);
}

/* bf16 is multiplied in the type of the result, which is exact. */
static void widen(struct hlo *h, enum dtype to, const struct hlo_value *in, struct hlo_value *out) {
  for (int i = 0; i < 2; i++) out[i] = in[i].type.dtype == DT_BF16 ? hlo_convert(h, to, in[i]) : in[i];
}

bool hlo_matmul(struct hlo *h, const struct node *n, const struct hlo_value *operands,
                struct hlo_value *out) {
  struct type t = hlo_type(h, n);
  struct hlo_value in[2];
  widen(h, (enum dtype)t.dtype, operands, in);
  int64_t batch[MAX_RANK];
  int a = t.rank - 1 - (int)node_int_or(n, ATTR_transpose_a, 0);
  int b = t.rank - 2 + (int)node_int_or(n, ATTR_transpose_b, 0);
  for (int i = 0; i < t.rank - 2; i++) batch[i] = i;
  const char *axes = hlo_list(h->arena, t.rank - 2, batch);
  const char *attrs = arena_printf(h->arena,
                                   "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = %s, "
                                   "rhs_batching_dimensions = %s, lhs_contracting_dimensions = [%d], "
                                   "rhs_contracting_dimensions = [%d]>, %s",
                                   axes, axes, a, b, precision(h, n));
  *out = hlo_op(h, "dot_general", &t, 2, in, attrs, NULL);
  return true;
}

/* ---- convolutions: input [N, I..., C], kernel [K..., C / groups, F], output [N, O..., F], see ir/ops/conv.c ---- */

/* Of each spatial axis. */
struct axes_of {
  int rank;
  int64_t stride[MAX_RANK], low[MAX_RANK], high[MAX_RANK], input_dilation[MAX_RANK],
      kernel_dilation[MAX_RANK];
  int64_t groups, batch_groups;
};

static struct axes_of axes_of(const struct node *n) {
  struct axes_of w = {.rank = n->type.rank - 2, .groups = node_int_or(n, ATTR_groups, 1), .batch_groups = 1};
  hlo_spatial(n, ATTR_strides, 1, w.stride);
  hlo_spatial(n, ATTR_padding_low, 0, w.low);
  hlo_spatial(n, ATTR_padding_high, 0, w.high);
  hlo_spatial(n, ATTR_input_dilation, 1, w.input_dilation);
  hlo_spatial(n, ATTR_kernel_dilation, 1, w.kernel_dilation);
  return w;
}

/* Where axes stand in a tensor: "[b, 0, 1, f]" of first = "b", last = "f"; of a kernel "[0, 1, i, o]". */
static const char *places(struct hlo *h, int rank, const char *before, const char *after) {
  struct str s = str_make(h->arena);
  str_putc(&s, '[');
  if (*before) str_printf(&s, "%s, ", before);
  for (int i = 0; i < rank; i++) str_printf(&s, "%d, ", i);
  str_printf(&s, "%s]", after);
  return s.data;
}

static int64_t dilated(int64_t size, int64_t dilation) { return size ? (size - 1) * dilation + 1 : 0; }

static struct hlo_value convolve(struct hlo *h, const struct node *n, struct axes_of w,
                                 const char *dimensions, struct hlo_value x, struct hlo_value k) {
  struct type t = hlo_type(h, n);
  if (!hlo_crop(h, &x, 1, w.rank, w.input_dilation, w.low, w.high))
    return hlo_number(h, &t, 0); /* sums of nothing */
  struct str padding = str_make(h->arena);
  for (int i = 0; i < w.rank; i++)
    str_printf(&padding, "%s[%lld, %lld]", i ? ", " : "", (long long)w.low[i], (long long)w.high[i]);
  const char *attrs = arena_printf(
      h->arena,
      "window_strides = %s, padding = dense<[%s]> : tensor<%dx2xi64>, lhs_dilation = %s, rhs_dilation = %s, "
      "dimension_numbers = #stablehlo.conv<%s>, feature_group_count = %lld : i64, "
      "batch_group_count = %lld : i64, %s",
      hlo_array(h->arena, w.rank, w.stride), padding.data, w.rank,
      hlo_array(h->arena, w.rank, w.input_dilation), hlo_array(h->arena, w.rank, w.kernel_dilation),
      dimensions, (long long)w.groups, (long long)w.batch_groups, precision(h, n));
  return hlo_op(h, "convolution", &t, 2, (struct hlo_value[]){x, k}, attrs, NULL);
}

/* Filters of a group become its channels: [K..., C / g, g * F'] to [K..., F', g * C / g]. */
static struct hlo_value turned(struct hlo *h, struct hlo_value k, int64_t groups) {
  struct type apart = k.type, t = k.type;
  int rank = t.rank;
  int64_t perm[MAX_RANK];
  if (rank == MAX_RANK) return k; /* a conv has five axes at most */
  apart.rank = (uint8_t)(rank + 1);
  apart.dim[rank - 1] = groups;
  apart.dim[rank] = t.dim[rank - 1] / groups;
  for (int i = 0; i < rank - 2; i++) perm[i] = i;
  perm[rank - 2] = rank;
  perm[rank - 1] = rank - 1;
  perm[rank] = rank - 2;
  t.dim[rank - 2] = apart.dim[rank];
  t.dim[rank - 1] = groups * k.type.dim[rank - 2];
  return hlo_shaped(h, hlo_permuted(h, hlo_shaped(h, k, &apart), perm), &t);
}

static struct hlo_value reversed(struct hlo *h, struct hlo_value x, int count) {
  int64_t axes[MAX_RANK];
  for (int i = 0; i < count; i++) axes[i] = i;
  const char *attrs = arena_printf(h->arena, "dimensions = %s", hlo_array(h->arena, count, axes));
  return hlo_op(h, "reverse", &x.type, 1, &x, attrs, NULL);
}

/* The input out of output and kernel: the kernel backwards over the output, strides and dilation of the input having
 * changed places. */
static struct hlo_value of_input(struct hlo *h, const struct node *n, struct hlo_value y,
                                 struct hlo_value k) {
  struct axes_of w = axes_of(n), back = w;
  struct type t = hlo_type(h, n);
  for (int i = 0; i < w.rank; i++) {
    int64_t kernel = dilated(k.type.dim[i], w.kernel_dilation[i]);
    int64_t output = dilated(y.type.dim[i + 1], w.stride[i]);
    back.stride[i] = w.input_dilation[i];
    back.input_dilation[i] = w.stride[i];
    back.low[i] = kernel - 1 - w.low[i];
    back.high[i] = dilated(t.dim[i + 1], w.input_dilation[i]) - output - back.low[i] + kernel - 1;
  }
  const char *rows = places(h, w.rank, "b", "f");
  const char *dimensions = arena_printf(h->arena, "%sx%s->%s", rows, places(h, w.rank, "", "i, o"), rows);
  return convolve(h, n, back, dimensions, y, turned(h, reversed(h, k, w.rank), w.groups));
}

/* The kernel out of input and output: the output is a kernel over the input, whose rows are summed over. */
static struct hlo_value of_kernel(struct hlo *h, const struct node *n, struct hlo_value x,
                                  struct hlo_value y) {
  struct axes_of w = axes_of(n), over = w;
  struct type t = hlo_type(h, n);
  over.groups = 1;
  over.batch_groups = w.groups;
  for (int i = 0; i < w.rank; i++) {
    over.stride[i] = w.kernel_dilation[i];
    over.kernel_dilation[i] = w.stride[i];
    over.high[i] = dilated(t.dim[i], w.kernel_dilation[i]) - 1 + dilated(y.type.dim[i + 1], w.stride[i]) -
                   dilated(x.type.dim[i + 1], w.input_dilation[i]) - w.low[i];
  }
  const char *dimensions = arena_printf(h->arena, "%sx%s->%s", places(h, w.rank, "f", "b"),
                                        places(h, w.rank, "i", "o"), places(h, w.rank, "", "b, f"));
  return convolve(h, n, over, dimensions, x, y);
}

bool hlo_conv(struct hlo *h, const struct node *n, const struct hlo_value *operands, struct hlo_value *out) {
  struct type t = hlo_type(h, n);
  struct hlo_value in[2];
  widen(h, (enum dtype)t.dtype, operands, in);
  const struct attr *of = node_attr(n, ATTR_result);
  struct axes_of w = axes_of(n);
  const char *rows = places(h, w.rank, "b", "f");
  if (type_count(&in[0].type) == 0 || type_count(&in[1].type) == 0 || type_count(&t) == 0)
    *out = hlo_number(h, &t, 0); /* sums of nothing */
  else if (!of)
    *out = convolve(h, n, w, arena_printf(h->arena, "%sx%s->%s", rows, places(h, w.rank, "", "i, o"), rows),
                    in[0], in[1]);
  else if (strcmp(of->string, "input") == 0)
    *out = of_input(h, n, in[0], in[1]);
  else
    *out = of_kernel(h, n, in[0], in[1]);
  return true;
}

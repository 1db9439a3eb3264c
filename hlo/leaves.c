/* SPDX-License-Identifier: Apache-2.0 */
/* Along an axis, and by numbers that are data. A number that leads outside is moved inside by StableHLO's gather: what
 * it finds there is replaced by zeros. Its scatter leaves out what leads outside. */
#include "hlo/rules.h"

#include "ir/ops/leaf.h"

/* ---- lines ---- */

/* All sums end where their window does: it is as long as the line, and begins before it. Exclusive sums are those of
 * the line that has a zero in front and has lost its end. */
bool hlo_cumsum(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  struct type t = hlo_type(h, n), scalar = type_scalar((enum dtype)t.dtype);
  int64_t axis = node_int(n, ATTR_axis), more = t.dim[axis] - 1, low[MAX_RANK] = {0}, high[MAX_RANK] = {0};
  bool reverse = node_int_or(n, ATTR_reverse, 0);
  struct hlo_windows w = hlo_windows(t.rank);
  struct hlo_value x = in[0];
  low[axis] = reverse ? -1 : 1;
  high[axis] = -low[axis];
  if (node_int_or(n, ATTR_exclusive, 0)) x = hlo_padded(h, x, hlo_integer(h, &scalar, 0), &t, low, high);
  w.size[axis] = more + 1;
  (reverse ? w.high : w.low)[axis] = more;
  *out = hlo_reduce_windows(h, "add", x, 0, &t, &w);
  return true;
}

/* A stable sort of the elements with their places. NaN is behind all numbers, descending before them: only a NaN does
 * not equal itself. */
bool hlo_argsort(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  enum dtype d = (enum dtype)in[0].type.dtype;
  struct type t = hlo_type(h, n), scalar = type_scalar(d);
  struct hlo_value places = hlo_count(h, &t, node_int(n, ATTR_axis));
  const char *element = hlo_type_text(h->arena, &scalar);
  bool descending = node_int_or(n, ATTR_descending, 0);
  struct str r = str_make(h->arena);
  str_printf(&r,
             "    ^bb0(%%a: %s, %%b: %s, %%i: tensor<i32>, %%j: tensor<i32>):\n"
             "      %%before = stablehlo.compare %s, %%a, %%b : (%s, %s) -> tensor<i1>\n",
             element, element, descending ? "GT" : "LT", element, element);
  if (dtype_is_float(d)) {
    const char *last = descending ? "a" : "b", *number = descending ? "b" : "a";
    str_printf(&r,
               "      %%odd = stablehlo.compare NE, %%%s, %%%s : (%s, %s) -> tensor<i1>\n"
               "      %%even = stablehlo.compare EQ, %%%s, %%%s : (%s, %s) -> tensor<i1>\n"
               "      %%both = stablehlo.and %%odd, %%even : tensor<i1>\n"
               "      %%first = stablehlo.or %%before, %%both : tensor<i1>\n",
               last, last, element, element, number, number, element, element);
  }
  str_printf(&r, "      stablehlo.return %%%s : tensor<i1>\n", dtype_is_float(d) ? "first" : "before");
  *out = hlo_sorted(h, in[0], places, node_int(n, ATTR_axis), r.data);
  return true;
}

/* ---- by numbers ---- */

/* Numbers of a table as signed integers, and where they are in [0, size). */
struct row_places {
  struct hlo_value at, inside;
};

static struct row_places places_of(struct hlo *h, struct hlo_value index, int64_t size) {
  struct row_places p = {.at = index.type.dtype == DT_U8 ? hlo_convert(h, DT_I32, index) : index};
  const struct type *t = &p.at.type;
  if (t->dtype == DT_I32 && size > INT32_MAX) p.at = hlo_convert(h, DT_I64, p.at);
  struct hlo_value low = hlo_compare(h, "GE", p.at, hlo_integer(h, &p.at.type, 0));
  struct hlo_value high = hlo_compare(h, "LT", p.at, hlo_integer(h, &p.at.type, size));
  p.inside = hlo_binary(h, "and", low, high);
  return p;
}

/* 0, 1, ... without `axis`, or all where axis is -1; how many. */
static int axes_but(int rank, int64_t axis, int64_t first, int64_t *out) {
  int count = 0;
  for (int i = 0; i < rank; i++)
    if (i != axis) out[count++] = first + i;
  return count;
}

/* Rows: axes of a row, which stand behind those of the index in what gather gives. */
static const char *row_windows(struct hlo *h, const struct hlo_value *table, const struct hlo_value *index) {
  int64_t axes[MAX_RANK];
  int count = axes_but(table->type.rank - 1, -1, index->type.rank, axes);
  return hlo_list(h->arena, count, axes);
}

bool hlo_gather(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  struct type t = hlo_type(h, n), mask = type_with_dtype(t, DT_BOOL);
  const struct type *table = &in[0].type;
  int64_t size[MAX_RANK], axes[MAX_RANK];
  *out = hlo_number(h, &t, 0);
  if (type_count(&t) == 0 || table->dim[0] == 0) return true;
  struct row_places p = places_of(h, in[1], table->dim[0]);
  for (int i = 0; i < table->rank; i++) size[i] = i ? table->dim[i] : 1;
  const char *attrs = arena_printf(
      h->arena,
      "dimension_numbers = #stablehlo.gather<offset_dims = %s, collapsed_slice_dims = [0], "
      "start_index_map = [0], index_vector_dim = %d>, slice_sizes = %s, indices_are_sorted = false",
      row_windows(h, &in[0], &in[1]), in[1].type.rank, hlo_array(h->arena, table->rank, size));
  struct hlo_value rows = hlo_op(h, "gather", &t, 2, (struct hlo_value[]){in[0], p.at}, attrs, NULL);
  int count = axes_but(in[1].type.rank, -1, 0, axes);
  *out = hlo_select(h, hlo_repeated(h, p.inside, &mask, count, axes), rows, *out);
  return true;
}

static struct hlo_value scatter(struct hlo *h, struct hlo_value x, struct row_places p,
                                struct hlo_value values, const char *numbers) {
  const char *attrs = arena_printf(h->arena,
                                   "scatter_dimension_numbers = #stablehlo.scatter<%s>, indices_are_sorted = "
                                   "false, unique_indices = false",
                                   numbers);
  return hlo_op(h, "scatter", &x.type, 3, (struct hlo_value[]){x, p.at, values}, attrs,
                hlo_joining(h, "add", (enum dtype)x.type.dtype));
}

bool hlo_scatter_add(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  (void)n;
  *out = in[0];
  if (type_count(&in[0].type) == 0 || type_count(&in[2].type) == 0) return true;
  const char *numbers = arena_printf(h->arena,
                                     "update_window_dims = %s, inserted_window_dims = [0], "
                                     "scatter_dims_to_operand_dims = [0], index_vector_dim = %d",
                                     row_windows(h, &in[0], &in[1]), in[1].type.rank);
  *out = scatter(h, in[0], places_of(h, in[1], in[0].type.dim[0]), in[2], numbers);
  return true;
}

/* Along an axis: all others go in step with the index. */
bool hlo_take_along(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  struct type t = hlo_type(h, n);
  int64_t axis = node_int(n, ATTR_axis), one[MAX_RANK], axes[MAX_RANK];
  *out = hlo_number(h, &t, 0);
  if (type_count(&t) == 0 || in[0].type.dim[axis] == 0) return true;
  struct row_places p = places_of(h, in[1], in[0].type.dim[axis]);
  for (int i = 0; i < t.rank; i++) one[i] = 1;
  const char *others = hlo_list(h->arena, axes_but(t.rank, axis, 0, axes), axes);
  const char *attrs = arena_printf(
      h->arena,
      "dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [%lld], "
      "operand_batching_dims = %s, start_indices_batching_dims = %s, start_index_map = [%lld], "
      "index_vector_dim = %d>, slice_sizes = %s, indices_are_sorted = false",
      (long long)axis, others, others, (long long)axis, t.rank, hlo_array(h->arena, t.rank, one));
  struct hlo_value y = hlo_op(h, "gather", &t, 2, (struct hlo_value[]){in[0], p.at}, attrs, NULL);
  *out = hlo_select(h, p.inside, y, *out);
  return true;
}

bool hlo_add_along(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  int64_t axis = node_int(n, ATTR_axis), axes[MAX_RANK];
  int rank = n->type.rank;
  *out = in[0];
  if (type_count(&in[0].type) == 0 || type_count(&in[2].type) == 0) return true;
  const char *others = hlo_list(h->arena, axes_but(rank, axis, 0, axes), axes);
  const char *numbers =
      arena_printf(h->arena,
                   "update_window_dims = [], inserted_window_dims = [%lld], input_batching_dims = %s, "
                   "scatter_indices_batching_dims = %s, scatter_dims_to_operand_dims = [%lld], "
                   "index_vector_dim = %d",
                   (long long)axis, others, others, (long long)axis, rank);
  *out = scatter(h, in[0], places_of(h, in[1], in[0].type.dim[axis]), in[2], numbers);
  return true;
}

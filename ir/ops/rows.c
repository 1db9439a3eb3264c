/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are picked out of a table, and rows that are added to one, where the row numbers are data. No row number
 * leads outside: gather gives zeros for one that is not there, scatter_add adds nothing. */
#include "base/half.h"
#include "base/integer.h"
#include "ir/graph/build.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"
#include "ir/ops/spatial.h"

#include <string.h>

/* The shape of the rows of `table` that `index` names. */
static bool row_shape(const struct type *table, const struct type *index, struct type *out) {
  *out = *index;
  out->dtype = table->dtype;
  if (index->rank + table->rank - 1 > MAX_RANK) return false;
  for (int i = 1; i < table->rank; i++) out->dim[out->rank++] = table->dim[i];
  return true;
}

static bool check_rows(const struct node *n, struct type *rows, struct arena *a, const char **why) {
  const struct type *table = &n->inputs[0]->type, *index = &n->inputs[1]->type;
  const char *name = op_of(n)->name;
  if (!dtype_is_int(index->dtype))
    *why = arena_printf(a, "%s needs row numbers of an integer type, not %s", name, type_text(a, index));
  else if (table->rank == 0)
    *why = arena_printf(a, "%s needs a table of rows, not %s", name, type_text(a, table));
  else if (table->dim[0] < 0)
    *why = arena_printf(a, "%s cannot name rows of the batch: %s", name, type_text(a, table));
  else if (!row_shape(table, index, rows))
    *why = arena_printf(a, "%s of rows of %s by %s has more than %d axes", name, type_text(a, table),
                        type_text(a, index), MAX_RANK);
  else
    return true;
  return false;
}

/* gather: out[i] = table[index[i]], zeros where there is no such row. scatter_add: out = x; for i in order:
 * out[index[i]] += values[i], nothing where there is no such row. x and out may be one place, and then nothing
 * but the named rows is touched. */
struct table_rows {
  enum dtype dtype, index; /* of the rows; of the row numbers: i32, i64 or u8 */
  int64_t rows, width;     /* of the table or x: rows, elements of each */
  int64_t count;           /* row numbers */
};

static struct table_rows rows_of(const struct node *n) {
  const struct type *table = &n->inputs[0]->type, *index = &n->inputs[1]->type;
  struct table_rows r = {.dtype = table->dtype, .index = index->dtype, .rows = table->dim[0], .width = 1};
  for (int i = 1; i < table->rank; i++) r.width *= table->dim[i];
  r.count = type_count(index);
  return r;
}

/* Row numbers, and the table: "64 of 1000x16". */
static void rows_sizes(struct str *s, const struct node *n) {
  struct table_rows r = rows_of(n);
  str_printf(s, "%lld of %lldx%lld", (long long)r.count, (long long)r.rows, (long long)r.width);
}

static void set_numbers(const struct table_rows *r, int64_t *out) {
  const int64_t numbers[] = {r->count, r->rows, r->width, dtype_size(r->index), dtype_size(r->dtype)};
  memcpy(out, numbers, sizeof numbers);
}

int64_t integer_at(const struct tensor *t, int64_t i) {
  return t->type.dtype == DT_U8    ? ((const uint8_t *)t->data)[i]
         : t->type.dtype == DT_I32 ? ((const int32_t *)t->data)[i]
                                   : ((const int64_t *)t->data)[i];
}

/* The row that number i names, or -1: none. */
static int64_t row_at(const struct table_rows *r, const struct tensor *index, int64_t i) {
  int64_t row = integer_at(index, i);
  return row >= 0 && row < r->rows ? row : -1;
}

static bool gather_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  return check_rows(n, out, a, why);
}

static void gather_grad(struct grad *c, const struct node *n, struct node *dy) {
  struct node *table = n->inputs[0];
  grad_add(c, n, 0, build3(c->g, OP_scatter_add, build_fill(c->g, &table->type, 0), n->inputs[1], dy));
}

static int64_t gather_flops(const struct node *n) {
  (void)n;
  return 0;
}

static void gather_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct table_rows r = rows_of(n);
  size_t bytes = (size_t)(r.width * dtype_size(r.dtype));
  char *to = out->data;
  for (int64_t i = 0; i < r.count && bytes; i++, to += bytes) {
    int64_t row = row_at(&r, &in[1], i);
    if (row < 0)
      memset(to, 0, bytes);
    else
      memcpy(to, (const char *)in[0].data + (size_t)row * bytes, bytes);
  }
}

/* The rows that are named, not the table. */
static int64_t gather_traffic(const struct node *n, bool in_place) {
  (void)in_place;
  return type_bytes(&n->inputs[1]->type) + 2 * type_bytes(&n->type);
}

static int64_t gather_numbers(const struct node *n, int64_t *out) {
  struct table_rows r = rows_of(n);
  set_numbers(&r, out);
  return r.count * r.width;
}

const struct op_info op_gather = {.name = "gather",
                                  .kind = KIND_LEAF,
                                  .dtypes = DTYPE_CUSTOM,
                                  .min_inputs = 2,
                                  .max_inputs = 2,
                                  .linear = 1,
                                  .roles = {"table", "index"},
                                  .domain = DOMAIN_ANY,
                                  .infer = gather_infer,
                                  .grad = gather_grad,
                                  .flops = gather_flops,
                                  .eval = gather_eval,
                                  .sizes = rows_sizes,
                                  .traffic = gather_traffic,
                                  .numbers = gather_numbers};

/* ---- scatter_add: x, with values[i] added to row index[i], in the order of i ----
 *
 * To what is narrow values of f32 are added: the sum of a row and of all that comes to it is one of f32, rounded once.
 */

static bool scatter_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type, *values = &n->inputs[2]->type;
  struct type rows;
  if (!check_rows(n, &rows, a, why)) return false;
  if (dtype_is_narrow(x->dtype)) rows.dtype = DT_F32;
  if (x->dtype == DT_BOOL) {
    *why = arena_printf(a, "scatter_add needs numbers, not %s", type_text(a, x));
    return false;
  }
  if (!type_equal(&rows, values)) {
    *why = arena_printf(a, "scatter_add to %s by %s needs values of %s, not %s", type_text(a, x),
                        type_text(a, &n->inputs[1]->type), type_text(a, &rows), type_text(a, values));
    return false;
  }
  *out = *x;
  return true;
}

static void scatter_grad(struct grad *c, const struct node *n, struct node *dy) {
  grad_add(c, n, 0, dy);
  grad_add(c, n, 2, build2(c->g, OP_gather, dy, n->inputs[1]));
}

static int64_t scatter_flops(const struct node *n) { return type_count(&n->inputs[2]->type); }

#define ADD(T, SUM) \
  for (int64_t i = 0; i < count; i++) ((T *)to)[i] = (T)((SUM)((T *)to)[i] + ((const T *)from)[i])

void add_elements(enum dtype d, void *to, const void *from, int64_t count) { FOR_NUMBERS(d, ADD) }

static float f32_at(const struct tensor *t, int64_t i) {
  uint16_t half = ((const uint16_t *)t->data)[i];
  return t->type.dtype == DT_F16 ? f32_of_f16(half) : f32_of_bf16(half);
}

/* out holds x. Each row when it is named first, with the values of all that name it. */
static void scatter_narrow(const struct table_rows *r, const struct tensor *in, struct tensor *out) {
  const float *values = in[2].data;
  for (int64_t i = 0; i < r->count; i++) {
    int64_t row = row_at(r, &in[1], i), before = 0;
    while (before < i && row_at(r, &in[1], before) != row) before++;
    if (row < 0 || before < i) continue;
    for (int64_t k = 0; k < r->width; k++) {
      float sum = f32_at(out, row * r->width + k);
      for (int64_t e = i; e < r->count; e++)
        if (row_at(r, &in[1], e) == row) sum += values[e * r->width + k];
      ((uint16_t *)out->data)[row * r->width + k] = r->dtype == DT_F16 ? f16_of_f32(sum) : bf16_of_f32(sum);
    }
  }
}

static void scatter_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct table_rows r = rows_of(n);
  int64_t bytes = r.width * dtype_size(r.dtype);
  if (in[0].data != out->data && type_bytes(&n->type))
    memcpy(out->data, in[0].data, (size_t)type_bytes(&n->type));
  if (dtype_is_narrow(r.dtype)) {
    scatter_narrow(&r, in, out);
    return;
  }
  for (int64_t i = 0; i < r.count; i++) {
    int64_t row = row_at(&r, &in[1], i);
    if (row >= 0)
      add_elements(r.dtype, (char *)out->data + row * bytes, (const char *)in[2].data + i * bytes, r.width);
  }
}

/* The rows that are added to are read and written; all others are copied, unless they are there. */
static int64_t scatter_traffic(const struct node *n, bool in_place) {
  int64_t copied = in_place ? 0 : 2 * type_bytes(&n->type);
  return type_bytes(&n->inputs[1]->type) + 3 * type_bytes(&n->inputs[2]->type) + copied;
}

/* A block of a GPU for 32 columns of each row, or of each row number where there are fewer of these. */
static int64_t scatter_numbers(const struct node *n, int64_t *out) {
  struct table_rows r = rows_of(n);
  set_numbers(&r, out);
  const int64_t blocks[] = {r.count < r.rows ? r.count : r.rows, blocks_of(r.width, 32)};
  return spatial_product(BLOCK_THREADS, 2, blocks);
}

const struct op_info op_scatter_add = {.name = "scatter_add",
                                       .kind = KIND_LEAF,
                                       .dtypes = DTYPE_CUSTOM,
                                       .min_inputs = 3,
                                       .max_inputs = 3,
                                       .roles = {"x", "index", "values"},
                                       .domain = DOMAIN_ANY,
                                       .infer = scatter_infer,
                                       .grad = scatter_grad,
                                       .flops = scatter_flops,
                                       .eval = scatter_eval,
                                       .sizes = rows_sizes,
                                       .in_place = 1,
                                       .traffic = scatter_traffic,
                                       .numbers = scatter_numbers};

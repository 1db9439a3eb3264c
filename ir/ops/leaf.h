/* What the functions of leaves want to know of a node: its sizes as numbers. Types are concrete. */
#ifndef DGC_IR_OPS_LEAF_H
#define DGC_IR_OPS_LEAF_H

#include "ir/ops/op.h"

/* matmul: c = op(a) op(b), dense and row-major, `batch` of them one behind the other; op(a) is m x k, op(b) k x n. */
struct product {
  enum dtype dtype; /* not bool */
  int64_t batch, m, n, k;
  bool transpose_a, transpose_b; /* a lies in memory as k x m, b as n x k */
  bool bf16; /* a and b, of f32, hold bfloat16 values only: may be multiplied as such, and added up in f32 */
};
struct product product_of(const struct node *n);

/* cumsum: x and y are [outer, length, inner], dense; sums run along the middle axis. */
struct lines {
  enum dtype dtype; /* not bool */
  int64_t outer, length, inner;
  bool reverse, exclusive;
};
struct lines lines_of(const struct node *n);

/* gather: out[i] = table[index[i]], zeros where there is no such row. scatter_add: out = x; for i in order:
 * out[index[i]] += values[i], nothing where there is no such row. x and out may be one place, and then nothing
 * but the named rows is touched. */
struct table_rows {
  enum dtype dtype, index; /* of the rows; of the row numbers: i32, i64 or u8 */
  int64_t rows, width;     /* of the table or x: rows, elements of each */
  int64_t count;           /* row numbers */
};
struct table_rows rows_of(const struct node *n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table that are named by numbers, which are data. */
#ifndef DGC_KERNELS_CPU_ROWS_H
#define DGC_KERNELS_CPU_ROWS_H

#include <stdint.h>

/* The numbers of gather and scatter_add: `count` row numbers of index_bytes each: 1 is u8, 4 is i32, 8 is i64; and
 * rows of `width` elements of element_bytes each, of which the table has `rows`. */
struct rows_numbers {
  int64_t count, rows, width, index_bytes, element_bytes;
};

/* Those of take_along and add_along: `outer` tables one behind the other, and row numbers for each element. */
struct along_numbers {
  int64_t outer;
  struct rows_numbers r;
};

/* The row that number i names, the table's rows being numbered from `first` on; or -1: none. */
static inline int64_t row_from(const struct rows_numbers *n, int64_t first, const void *index, int64_t i) {
  int64_t row;
  switch (n->index_bytes) {
  case 1: row = ((const uint8_t *)index)[i]; break;
  case 4: row = ((const int32_t *)index)[i]; break;
  default: row = ((const int64_t *)index)[i]; break;
  }
  return row >= first && row - first < n->rows ? row - first : -1;
}
static inline int64_t row_at(const struct rows_numbers *n, const void *index, int64_t i) {
  return row_from(n, 0, index, i);
}

#endif

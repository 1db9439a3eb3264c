/* Rows that are picked out of a table, or added to one, by numbers that are data. A number that names no row
 * reads as zeros and adds nothing, so that nothing outside is ever touched. */
#ifndef DGC_KERNELS_CPU_ROWS_H
#define DGC_KERNELS_CPU_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* `count` row numbers of index_bytes bytes each: 1 is u8, 4 is i32, 8 is i64. */
struct row_numbers {
  const void *index;
  int index_bytes;
  int64_t count;
};

/* out[i] = table[index[i]]: rows of `bytes` bytes, of which the table has `rows`. */
void rows_gather(const struct row_numbers *n, int64_t rows, size_t bytes, const void *table, void *out);

/* x[index[i]] += values[i], in the order of i: rows of `width` elements, of which x has `rows`. Integers
 * wrap. */
#define ROWS_SCATTER(name, T) \
  void name(const struct row_numbers *n, int64_t rows, int64_t width, const T *values, T *x)

ROWS_SCATTER(rows_scatter_f32, float);
ROWS_SCATTER(rows_scatter_f64, double);
ROWS_SCATTER(rows_scatter_u64, uint64_t); /* also i64 */
ROWS_SCATTER(rows_scatter_u32, uint32_t); /* also i32 */
ROWS_SCATTER(rows_scatter_u8, uint8_t);

#endif

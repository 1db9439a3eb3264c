/* A row at a time, in the order of the numbers: so the sum of rows with one number has one order. */
#include "kernels/cpu/rows.h"

#include <string.h>

/* The row that number i names, or -1. */
static inline int64_t row_at(const struct row_numbers *n, int64_t i, int64_t rows) {
  int64_t row;
  switch (n->index_bytes) {
  case 1: row = ((const uint8_t *)n->index)[i]; break;
  case 4: row = ((const int32_t *)n->index)[i]; break;
  default: row = ((const int64_t *)n->index)[i]; break;
  }
  return row >= 0 && row < rows ? row : -1;
}

void rows_gather(const struct row_numbers *n, int64_t rows, size_t bytes, const void *table, void *out) {
  if (bytes == 0) return;
  char *to = out;
  for (int64_t i = 0; i < n->count; i++, to += bytes) {
    int64_t row = row_at(n, i, rows);
    if (row < 0)
      memset(to, 0, bytes);
    else
      memcpy(to, (const char *)table + (size_t)row * bytes, bytes);
  }
}

#define DEFINE_SCATTER(name, T)                             \
  ROWS_SCATTER(name, T) {                                   \
    for (int64_t i = 0; i < n->count; i++) {                \
      int64_t row = row_at(n, i, rows);                     \
      if (row < 0) continue;                                \
      T *restrict to = x + row * width;                     \
      const T *restrict from = values + i * width;          \
      for (int64_t k = 0; k < width; k++) to[k] += from[k]; \
    }                                                       \
  }

DEFINE_SCATTER(rows_scatter_f32, float)
DEFINE_SCATTER(rows_scatter_f64, double)
DEFINE_SCATTER(rows_scatter_u64, uint64_t)
DEFINE_SCATTER(rows_scatter_u32, uint32_t)
DEFINE_SCATTER(rows_scatter_u8, uint8_t)

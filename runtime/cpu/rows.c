#include "runtime/cpu/rows.h"

#include "kernels/cpu/rows.h"

#include <string.h>

static struct row_numbers numbers_of(const struct rows_size *r, const void *index) {
  return (struct row_numbers){index, dtype_size(r->index), r->count};
}

void cpu_gather(void *const *args, const void *rows_size) {
  const struct rows_size *r = rows_size;
  struct row_numbers n = numbers_of(r, args[1]);
  rows_gather(&n, r->rows, (size_t)(r->width * dtype_size(r->dtype)), args[0], args[2]);
}

void cpu_scatter(void *const *args, const void *rows_size) {
  const struct rows_size *r = rows_size;
  struct row_numbers n = numbers_of(r, args[1]);
  size_t bytes = (size_t)(r->rows * r->width * dtype_size(r->dtype));
  const void *values = args[2];
  void *x = args[3];
  if (x != args[0] && bytes) memcpy(x, args[0], bytes);
  switch (r->dtype) {
  case DT_F32: rows_scatter_f32(&n, r->rows, r->width, values, x); break;
  case DT_F64: rows_scatter_f64(&n, r->rows, r->width, values, x); break;
  case DT_I64: rows_scatter_u64(&n, r->rows, r->width, values, x); break;
  case DT_I32: rows_scatter_u32(&n, r->rows, r->width, values, x); break;
  default: rows_scatter_u8(&n, r->rows, r->width, values, x); break;
  }
}

/* out[index[i]] += values[i] in the order of i, so the sum of rows with one number has one order; nothing for a number
 * that names no row. Integers wrap. */
#include "kernels/cpu/leaf.h"
#include "kernels/cpu/rows.h"

#define DEFINE(name, T)                                                               \
  static void name(void *const *args, const void *numbers) {                          \
    const struct rows_numbers n =                                                     \
        *(const struct rows_numbers *)numbers; /* what is written cannot change it */ \
    const void *index = args[1];                                                      \
    const T *values = args[2];                                                        \
    T *out = args[3];                                                                 \
    for (int64_t i = 0; i < n.count; i++) {                                           \
      int64_t row = row_at(&n, index, i);                                             \
      if (row < 0) continue;                                                          \
      T *restrict to = out + row * n.width;                                           \
      const T *restrict from = values + i * n.width;                                  \
      for (int64_t k = 0; k < n.width; k++) to[k] += from[k];                         \
    }                                                                                 \
  }

DEFINE(scatter_f32, float)
DEFINE(scatter_f64, double)
DEFINE(scatter_u64, uint64_t)
DEFINE(scatter_u32, uint32_t)
DEFINE(scatter_u8, uint8_t)

const struct leaf_functions cpu_scatter_add = {
    .f32 = scatter_f32, .f64 = scatter_f64, .i32 = scatter_u32, .i64 = scatter_u64, .u8 = scatter_u8};

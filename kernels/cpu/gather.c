/* SPDX-License-Identifier: Apache-2.0 */
/* out[i] = table[index[i]]; zeros for a number that names no row, so that nothing outside is ever read. */
#include "kernels/cpu/leaf.h"
#include "kernels/cpu/rows.h"

#include <string.h>

static void gather(void *const *args, const void *numbers) {
  const struct rows_numbers n =
      *(const struct rows_numbers *)numbers; /* a copy that what is written cannot change */
  const void *index = args[1];
  const char *table = args[0];
  char *out = args[2];
  size_t bytes = (size_t)(n.width * n.element_bytes);
  if (bytes == 0) return;
  for (int64_t i = 0; i < n.count; i++, out += bytes) {
    int64_t row = row_at(&n, index, i);
    if (row < 0)
      memset(out, 0, bytes);
    else
      memcpy(out, table + (size_t)row * bytes, bytes);
  }
}

const struct leaf_functions cpu_gather = {.f32 = gather,
                                          .f64 = gather,
                                          .i32 = gather,
                                          .i64 = gather,
                                          .u8 = gather,
                                          .boolean = gather,
                                          .bf16 = gather,
                                          .f16 = gather,
                                          .blocks = 1 << 1 | 1 << 2};

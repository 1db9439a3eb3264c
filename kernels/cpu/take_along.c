/* SPDX-License-Identifier: Apache-2.0 */
/* y[o][i][k] = x[o][index[o][i][k]][k], 0 where there is no such place. */
#include "kernels/cpu/leaf.h"
#include "kernels/cpu/rows.h"

#define DEFINE(name, T)                                                         \
  static void name(void *const *args, const void *numbers) {                    \
    const struct along_numbers *n = numbers;                                    \
    const T *x = args[0];                                                       \
    T *y = args[2];                                                             \
    for (int64_t o = 0, at = 0; o < n->outer; o++, x += n->r.rows * n->r.width) \
      for (int64_t i = 0; i < n->r.count; i++)                                  \
        for (int64_t k = 0; k < n->r.width; k++, at++) {                        \
          int64_t row = row_at(&n->r, args[1], at);                             \
          y[at] = row < 0 ? 0 : x[row * n->r.width + k];                        \
        }                                                                       \
  }

LEAF_OF_SIZES(take_along, .blocks = 1 << 0 | 1 << 1 | 1 << 2);

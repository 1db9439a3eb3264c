/* SPDX-License-Identifier: Apache-2.0 */
/* out[o][index[o][i][k]][k] += values[o][i][k] in the order of i, nothing where there is no such place. Integers
 * wrap. */
#include "kernels/cpu/leaf.h"
#include "kernels/cpu/rows.h"

#define DEFINE(name, T)                                                           \
  static void name(void *const *args, const void *numbers) {                      \
    const struct along_numbers *n = numbers;                                      \
    const T *values = args[2];                                                    \
    T *out = args[3];                                                             \
    for (int64_t o = 0, at = 0; o < n->outer; o++, out += n->r.rows * n->r.width) \
      for (int64_t i = 0; i < n->r.count; i++)                                    \
        for (int64_t k = 0; k < n->r.width; k++, at++) {                          \
          int64_t row = row_at(&n->r, args[1], at);                               \
          if (row >= 0) out[row * n->r.width + k] += values[at];                  \
        }                                                                         \
  }

LEAF_OF_NUMBERS(add_along, .blocks = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3);

/* SPDX-License-Identifier: Apache-2.0 */
/* y[o][i][k] = x[o][0][k] + ... + x[o][i][k], added in that order; exclusive: without the last; reverse: from the other
 * end. Integers wrap. A row of sums after the other, all of `inner` elements at once. */
#include "kernels/cpu/leaf.h"

#include <string.h>

struct cumsum {
  int64_t outer, length, inner, reverse, exclusive;
};

#define DEFINE(name, T)                                                               \
  static void name(void *const *args, const void *numbers) {                          \
    const struct cumsum *n = numbers;                                                 \
    int64_t length = n->length, inner = n->inner, step = n->reverse ? -inner : inner; \
    const T *x = args[0];                                                             \
    for (int64_t o = 0; o < n->outer && length > 0 && inner > 0; o++) {               \
      const T *from = x + (o * length + (n->reverse ? length - 1 : 0)) * inner;       \
      T *to = (T *)args[1] + (from - x);                                              \
      if (n->exclusive)                                                               \
        memset(to, 0, (size_t)inner * sizeof(T));                                     \
      else                                                                            \
        memcpy(to, from, (size_t)inner * sizeof(T));                                  \
      for (int64_t i = 1; i < length; i++, from += step, to += step) {                \
        const T *restrict add = n->exclusive ? from : from + step;                    \
        const T *restrict sum = to;                                                   \
        T *restrict next = to + step;                                                 \
        for (int64_t k = 0; k < inner; k++) next[k] = (T)(sum[k] + add[k]);           \
      }                                                                               \
    }                                                                                 \
  }

LEAF_OF_NUMBERS(cumsum, .blocks = 1 << 0 | 1 << 1);

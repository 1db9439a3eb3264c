/* A row of sums after the other, all of `inner` elements at once: each element has its one order of additions. */
#include "kernels/cpu/cumsum.h"

#include <stddef.h>
#include <string.h>

#define DEFINE(name, T)                                                      \
  CUMSUM(name, T) {                                                          \
    int64_t step = reverse ? -inner : inner;                                 \
    for (int64_t o = 0; o < outer && length > 0 && inner > 0; o++) {         \
      const T *from = x + (o * length + (reverse ? length - 1 : 0)) * inner; \
      T *to = y + (from - x);                                                \
      if (exclusive)                                                         \
        memset(to, 0, (size_t)inner * sizeof(T));                            \
      else                                                                   \
        memcpy(to, from, (size_t)inner * sizeof(T));                         \
      for (int64_t i = 1; i < length; i++, from += step, to += step) {       \
        const T *restrict add = exclusive ? from : from + step;              \
        const T *restrict sum = to;                                          \
        T *restrict next = to + step;                                        \
        for (int64_t k = 0; k < inner; k++) next[k] = (T)(sum[k] + add[k]);  \
      }                                                                      \
    }                                                                        \
  }

DEFINE(cumsum_f32, float)
DEFINE(cumsum_f64, double)
DEFINE(cumsum_u64, uint64_t)
DEFINE(cumsum_u32, uint32_t)
DEFINE(cumsum_u8, uint8_t)

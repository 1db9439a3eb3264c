/* Running sums on the host. */
#ifndef DGC_KERNELS_CPU_CUMSUM_H
#define DGC_KERNELS_CPU_CUMSUM_H

#include <stdbool.h>
#include <stdint.h>

/* x and y are [outer, length, inner], dense: y[o][i][k] = x[o][0][k] + ... + x[o][i][k], added in that order;
 * exclusive: without the last; reverse: from the other end. Integers wrap. */
#define CUMSUM(name, T) \
  void name(int64_t outer, int64_t length, int64_t inner, bool reverse, bool exclusive, const T *x, T *y)

CUMSUM(cumsum_f32, float);
CUMSUM(cumsum_f64, double);
CUMSUM(cumsum_u64, uint64_t); /* also i64 */
CUMSUM(cumsum_u32, uint32_t); /* also i32 */
CUMSUM(cumsum_u8, uint8_t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of rows of a matrix of f32, each weighted by one vector. */
#ifndef DGC_KERNELS_CPU_DOTS_H
#define DGC_KERNELS_CPU_DOTS_H

#include <stdint.h>

enum { DOTS_ROWS = 16 };

/* y[i] is the chain of fused multiply-adds of a[i * step + l] x[l] from +0 over ascending l < k, of `rows` rows, at
 * most DOTS_ROWS. The caller's processor has fma if it is x86. */
void dots_f32(const float *a, int64_t step, int64_t rows, const float *x, int64_t k, float *y);

#endif

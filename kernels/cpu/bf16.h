/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16 values in memory of their own: the upper halves of f32. */
#ifndef DGC_KERNELS_CPU_BF16_H
#define DGC_KERNELS_CPU_BF16_H

#include <stdint.h>

/* y[i] = the upper half of x[i], for `count` of them: the bfloat16, where x[i] is one. They do not overlap. */
void bf16_pack(const float *x, uint16_t *y, int64_t count);
/* The way back. */
void bf16_unpack(const uint16_t *x, float *y, int64_t count);

#endif

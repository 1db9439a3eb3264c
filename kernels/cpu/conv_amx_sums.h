/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of kernels of bfloat16 convolutions by AMX: sums over pixels, added up in f32. On x86-64 Linux alone. */
#ifndef DGC_KERNELS_CPU_CONV_AMX_SUMS_H
#define DGC_KERNELS_CPU_CONV_AMX_SUMS_H

#include "kernels/cpu/conv_amx_plan.h"

#include <stddef.h>

/* Bytes to work in. */
size_t conv_amx_sums_room(const struct conv_amx_sums *s);
/* The sums over images [first, end) to `sums`. Both memories begin at a multiple of 64. Only where amx_can;
 * any thread. */
void conv_amx_sums_run(const struct conv_amx_sums *s, const void *x, const void *dy, int64_t first,
                       int64_t end, float *sums, void *room);
/* Units [first, end) of the kernel's matrix, from the sums of so many pieces, which lie so many floats apart, a
 * multiple of 16, and are added up in their order. */
void conv_amx_sums_put(const struct conv_amx_sums *s, const float *sums, int64_t pieces, int64_t apart,
                       float *kernel, int64_t first, int64_t end);

#endif

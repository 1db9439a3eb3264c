/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of f32 in the order of ir/ops/conv.c whose results have few numbers in a pixel: lanes run along
 * pixels. */
#ifndef DGC_RUNTIME_CPU_CONV_ACROSS_H
#define DGC_RUNTIME_CPU_CONV_ACROSS_H

#include "kernels/cpu/patches.h"
#include "runtime/cpu/jit.h"

/* What runs behind the next cpu_jit_finish: the patches times a matrix of `columns` columns, one number of a pixel
 * each. NULL: this is not the way for these. `p` lives as long. */
struct conv_across;
const struct conv_across *conv_across_create(struct cpu_jit *jit, struct arena *a, const struct patches *p,
                                             int64_t columns);
/* Images [first, end) of the batch; nothing else of `out` is written. `memory`: so many bytes, of this thread. */
size_t conv_across_memory(const struct conv_across *x);
void conv_across_run(const struct conv_across *x, const float *image, const float *matrix, float *out,
                     int64_t first, int64_t end, void *memory);

#endif

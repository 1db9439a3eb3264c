/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of kernels of f32 in the order of ir/ops/conv.c, where patches have few numbers: they are gathered. */
#ifndef DGC_RUNTIME_CPU_CONV_GATHERED_H
#define DGC_RUNTIME_CPU_CONV_GATHERED_H

#include "kernels/cpu/patches.h"
#include "runtime/cpu/jit.h"

/* What runs behind the next cpu_jit_finish: of `filters` numbers beside each pixel. NULL: this is not the way for
 * these. `p` lives as long. */
struct conv_gathered;
const struct conv_gathered *conv_gathered_create(struct cpu_jit *jit, struct arena *a,
                                                 const struct patches *p, int64_t filters);
/* out[patch, filter] = the sum over pixels [first, end); `first` is a multiple of PRODUCT_PIECE. `memory`: so many
 * bytes, of this thread. */
size_t conv_gathered_memory(const struct conv_gathered *x);
void conv_gathered_run(const struct conv_gathered *x, const float *image, const float *beside, float *out,
                       int64_t first, int64_t end, void *memory);

#endif

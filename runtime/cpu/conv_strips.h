/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of kernels in the order of ir/ops/conv.c that have no more filters than a vector has lanes. */
#ifndef DGC_RUNTIME_CPU_CONV_STRIPS_H
#define DGC_RUNTIME_CPU_CONV_STRIPS_H

#include "kernels/cpu/patches.h"
#include "runtime/cpu/jit.h"

/* What runs behind the next cpu_jit_finish: of `filters` numbers of each group beside each pixel. NULL: this is not the
 * way for these. `p` lives as long. */
struct conv_strips;
const struct conv_strips *conv_strips_create(struct cpu_jit *jit, struct arena *a, const struct patches *p,
                                             int64_t filters);
/* out[patch, group, filter] = the sum over pixels [first, end); `first` is a multiple of PRODUCT_PIECE. `memory`: so
 * many bytes, of this thread. */
size_t conv_strips_memory(const struct conv_strips *x);
void conv_strips_run(const struct conv_strips *x, const void *image, const void *beside, void *out,
                     int64_t first, int64_t end, void *memory);

#endif

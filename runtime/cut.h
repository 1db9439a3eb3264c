/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in pieces: see runtime/pieces.h. */
#ifndef DGC_RUNTIME_CUT_H
#define DGC_RUNTIME_CUT_H

#include "ir/plan/plan.h"
#include "runtime/pieces.h"

/* The KERNEL step cut along one of its loops that is not reduced over, where that pays: each element is computed in
 * the order it always is, so the bits are those of the whole. NULL: it is one piece. `fn` is what it was compiled to;
 * the result lives in `a`. */
const struct pieces *cut_kernel(struct arena *a, const struct step *step, kernel_fn *fn);

/* A step in segments: each of them, and then what joins them. `fn` is what these two are compiled to. */
const struct pieces *cut_segments(struct arena *a, const struct step *step, const struct split *split,
                                  kernel_fn *const fn[2]);

#endif

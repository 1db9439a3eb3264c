/* SPDX-License-Identifier: Apache-2.0 */
/* A reduction in the order that GPUs have, written down once more; docs/gpu.md says it in words. */
#ifndef TESTS_SUPPORT_GPU_ORDER_H
#define TESTS_SUPPORT_GPU_ORDER_H

#include "ir/scalar/kernel.h"

/* As kernel_eval for a reduction, whose sizes decide the lanes and pieces; what it needs meanwhile comes from `a`. */
void kernel_in_gpu_order(struct arena *a, const struct kernel *k, void *const *args, const int64_t *sizes);

#endif

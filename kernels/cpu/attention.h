/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on the host, of f32 and f64: attention.c. */
#ifndef DGC_KERNELS_CPU_ATTENTION_H
#define DGC_KERNELS_CPU_ATTENTION_H

#include "kernels/cpu/leaf.h"

/* As `struct attention` of ir/ops/leaf.h. */
struct attention_numbers {
  int64_t batch, heads, queries, keys, size, values, causal, masked, mask_step[4], first, end;
};

leaf_fn attention_gradient_f32, attention_gradient_f64;
size_t attention_gradient_scratch(const void *numbers);
/* Heads, of all rows of the batch. */
int64_t attention_units(const void *numbers);
void attention_narrow(void *numbers, char **args, int64_t size, int64_t first, int64_t end);

#endif

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
/* The same by vectors of one width. */
struct attention_width {
  leaf_fn *f32, *f64, *gradient_f32, *gradient_f64;
};
/* From the narrowest on. This processor has the first ones, so many of them; the last one of these is what is used. */
extern const struct attention_width attention_widths[];
int attention_widths_here(void);
size_t attention_scratch(const void *numbers);
size_t attention_gradient_scratch(const void *numbers);
/* Heads, of all rows of the batch. */
int64_t attention_units(const void *numbers);
void attention_narrow(void *numbers, char **args, int64_t size, int64_t first, int64_t end);

#endif

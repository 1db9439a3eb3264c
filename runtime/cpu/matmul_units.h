/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of bfloat16 values by the processor's units for them, each on the calling thread alone. */
#ifndef DGC_RUNTIME_CPU_MATMUL_UNITS_H
#define DGC_RUNTIME_CPU_MATMUL_UNITS_H

#include "ir/ops/leaf.h"

/* One product of dense matrices of bfloat16, prepared for many runs. Of `size` neither batch, bf16 nor stored is looked
 * at. */
struct matmul_units;
/* `*made` is NULL where it is empty, the processor has no units, or oneDNN no code that takes them for these sizes.
 * False if there is no memory. */
bool matmul_units_create(const struct product *size, struct matmul_units **made);
/* The same for another thread, with memory of its own; NULL: there is none. It must be destroyed first. */
struct matmul_units *matmul_units_again(const struct matmul_units *units);
/* A struct matmul_units; NULL is allowed. */
void matmul_units_destroy(void *units);
/* Overwrites C, which overlaps neither A nor B. Any thread, but one at a time for one of them. False if the library
 * refuses. */
bool matmul_units_run(const struct matmul_units *units, const uint16_t *a, const uint16_t *b, float *c);

#endif

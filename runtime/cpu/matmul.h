/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by a plain loop, of any type of numbers; the leaf itself is in leaf.h. */
#ifndef DGC_RUNTIME_CPU_MATMUL_H
#define DGC_RUNTIME_CPU_MATMUL_H

#include "ir/ops/leaf.h"

/* Rows [top, bottom) of one product of a batch, by kernels/cpu/matmul.c. The operands are whole, and so is c. */
void matmul_rows(const struct product *p, int64_t batch, int64_t top, int64_t bottom, const void *a,
                 const void *b, void *c);

#endif

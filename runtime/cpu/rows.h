/* Gather and scatter steps: from a step to kernels/cpu/rows.c. */
#ifndef DGC_RUNTIME_CPU_ROWS_H
#define DGC_RUNTIME_CPU_ROWS_H

#include "ir/plan.h"

void cpu_gather(void *const *args, const void *rows_size);
void cpu_scatter(void *const *args, const void *rows_size);

#endif

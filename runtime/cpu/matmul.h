/* Matrix products on the host, each on the calling thread alone. */
#ifndef DGC_RUNTIME_CPU_MATMUL_H
#define DGC_RUNTIME_CPU_MATMUL_H

#include "ir/ops/leaf.h"

/* Overwrites C, which overlaps neither A nor B; k = 0 gives zeros. False if the library refuses. */
bool cpu_matmul(const struct product *mm, const void *a, const void *b, void *c);

/* The same product prepared for many runs, by code made for its shape where that is faster. Which way is taken
 * follows from the shape alone, and so do the bits. NULL if there is no memory. */
struct cpu_matmul_plan;
struct cpu_matmul_plan *cpu_matmul_plan_create(const struct product *mm);
/* A struct cpu_matmul_plan; NULL is allowed. */
void cpu_matmul_plan_destroy(void *plan);
/* Any thread, but one at a time for one plan. */
bool cpu_matmul_plan_run(const struct cpu_matmul_plan *plan, const void *a, const void *b, void *c);

#endif

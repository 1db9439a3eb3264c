/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on the host, each on the calling thread alone. */
#ifndef DGC_RUNTIME_CPU_MATMUL_H
#define DGC_RUNTIME_CPU_MATMUL_H

#include "ir/ops/leaf.h"

/* Overwrites C, which overlaps neither A nor B; k = 0 gives zeros. False if the library refuses. */
bool cpu_matmul(const struct product *mm, const void *a, const void *b, void *c);

/* One product prepared for many runs, by code made for its shape where that is faster. It may be a block of a larger
 * one, whose rows are longer: `rows` is how far apart they lie in A, B and C, in elements. Which way is taken follows
 * from the shape alone, and so do the bits. NULL if there is no memory. */
struct matmul_rows {
  int64_t a, b, c;
};
struct cpu_matmul_plan;
struct cpu_matmul_plan *cpu_matmul_plan_create(const struct product *mm, const struct matmul_rows *rows);
/* The same for another thread, with memory of its own. It must be destroyed first. */
struct cpu_matmul_plan *cpu_matmul_plan_again(const struct cpu_matmul_plan *plan);
/* How far apart the rows lie where nothing lies between them. */
struct matmul_rows matmul_dense(const struct product *mm);
/* A struct cpu_matmul_plan; NULL is allowed. */
void cpu_matmul_plan_destroy(void *plan);
/* Any thread, but one at a time for one plan. */
bool cpu_matmul_plan_run(const struct cpu_matmul_plan *plan, const void *a, const void *b, void *c);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float matrices in the order of ir/ops/matmul.c, by code of our own. */
#ifndef DGC_RUNTIME_CPU_GEMM_H
#define DGC_RUNTIME_CPU_GEMM_H

#include "ir/ops/leaf.h"
#include "runtime/cpu/jit.h"

/* One product, or several of equal size, prepared for many runs. Lives in `a`. */
struct gemm;
/* Whether this processor multiplies and adds in one instruction; else gemm_create is not called. */
bool gemm_can(void);
/* NULL after an error in `d`. */
const struct gemm *gemm_create(struct cpu_jit *jit, struct arena *a, const struct product *size,
                               struct diags *d);
/* Into how many blocks of C one product can be cut, downwards and along; a cut changes no bit. */
void gemm_units(const struct gemm *g, int64_t *down, int64_t *along);
/* Units [top, bottom) x [left, right) of product `batch`. Any thread, several at a time; memory that it works in is the
 * thread's: gemm_enter has made it, else the first call does, and leaves as an arena does if there is none. */
struct gemm_block {
  int64_t batch, top, bottom, left, right;
};
void gemm_run(const struct gemm *g, const struct gemm_block *block, const void *a, const void *b, void *c);
void gemm_enter(void);

#endif

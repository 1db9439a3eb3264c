/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles kernels to machine code of this host: each distinct kernel once, many at a time. */
#ifndef DGC_RUNTIME_CPU_JIT_H
#define DGC_RUNTIME_CPU_JIT_H

#include "base/diag.h"
#include "ir/scalar/kernel.h"
#include "runtime/cpu/tile.h"

struct cpu_jit;

/* NULL and an error if the machine has no code generator. May be used by several threads. */
struct cpu_jit *cpu_jit_create(struct diags *d);
/* Ends all functions it made. NULL is allowed. */
void cpu_jit_destroy(struct cpu_jit *jit);

/* out[i] = the function of kernels[i]. Kernels equal to one compiled before, here or in an earlier call, share
 * its function; all new ones are compiled together. The kernels are copied. */
bool cpu_jit_compile(struct cpu_jit *jit, const struct kernel *const *kernels, int n, kernel_fn **out,
                     struct diags *d);
/* Begins to compile kernels, on other threads than the caller's, that cpu_jit_compile will be asked for. */
void cpu_jit_foresee(struct cpu_jit *jit, const struct kernel *const *kernels, int n);

/* The function of a tile of a matrix product, made once, as long as `jit` lives: NULL until cpu_jit_finish, which makes
 * all that were asked for together. False after an error. */
struct tile_code {
  tile_fn *fn;
};
const struct tile_code *cpu_jit_tile(struct cpu_jit *jit, const struct tile *tile);
bool cpu_jit_finish(struct cpu_jit *jit, struct diags *d);

/* Distinct kernels compiled, those whose code came from the cache on disk instead, kernels that found a function
 * made before, and the seconds all this took. */
struct cpu_jit_stats {
  int64_t compiled, cached, reused;
  double seconds;
};
void cpu_jit_stats(struct cpu_jit *jit, struct cpu_jit_stats *out);

/* The kernel as LLVM IR, as it enters the passes: the same text on every machine. `triple` may be NULL.
 * NULL and an error if LLVM cannot be loaded. */
const char *cpu_kernel_llvm(struct arena *a, const struct kernel *k, const char *triple, struct diags *d);

#endif

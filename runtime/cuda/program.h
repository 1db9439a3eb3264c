/* SPDX-License-Identifier: Apache-2.0 */
/* All kernels of a plan as one text of CUDA C, how that text becomes code, and how a kernel is launched.
 *
 * The text includes nothing and uses little of the language: C types, functions and arrays, __global__,
 * __device__, __shared__, __syncthreads, the four built-in index variables, and the intrinsics that scalar.c
 * names. So a C compiler can translate it too, with a few macros in front.
 *
 * What is computed for one element gives the bits of ir/scalar/scalar.h. A reduction has an order of its own, which
 * depends on the number of elements that are reduced, and on whether the vector loop is one of the reduced
 * ones; on nothing else. */
#ifndef DGC_RUNTIME_CUDA_PROGRAM_H
#define DGC_RUNTIME_CUDA_PROGRAM_H

#include "base/diag.h"
#include "ir/scalar/kernel.h"

/* The functions of a kernel named NAME, and their parameters:
 *   NAME(arg..., sizes)             a map
 *   NAME_many(sets)                 the same for many sets of arguments; only if it was asked for
 *   NAME(arg..., scratch, sizes)    a reduction; `scratch` may be NULL if cuda_launches says 0 bytes
 *   NAME_join(arg..., scratch, sizes)
 * Each arg is a pointer, in the kernel's order. `sizes` is a struct of kernel_nsizes(k) int64_t, by value:
 * for cuLaunchKernel its address is that of the array in the plan. `scratch` points to device memory, `sets`
 * to an array in device memory, of which blockIdx.y picks one: a set is all args as pointers and then all
 * sizes, each 8 bytes, cuda_set_words(k) words in all. */
enum cuda_entry { CUDA_MAIN, CUDA_JOIN, CUDA_MANY };

struct cuda_program {
  const char *text;
  int count;
  const char *const *names; /* one per kernel */
};

/* `many`: which kernels, all of them maps, get NAME_many; NULL for none. */
struct cuda_program cuda_program_text(struct arena *a, const struct kernel *const *kernels, int count,
                                      const bool *many);
/* The function's own name. */
const char *cuda_entry_name(struct arena *a, const char *name, enum cuda_entry entry);

struct cuda_launch {
  enum cuda_entry entry;
  unsigned grid[3], block[3]; /* no dynamic shared memory */
};

/* How to run `k`: the launches in their order, and the bytes of device memory that they share. Returns their
 * number: 0 if there is nothing to do, else 1, or 2 for a long reduction. */
int cuda_launches(const struct kernel *k, const int64_t *sizes, struct cuda_launch out[2], size_t *scratch);
/* One more set, which `one` would run alone, for a launch of NAME_many; {0} at first, 65535 sets at most. */
void cuda_add_set(struct cuda_launch *many, const struct cuda_launch *one);
static inline int cuda_set_words(const struct kernel *k) { return k->nargs + kernel_nsizes(k); }

/* What cuModuleLoadData takes. */
struct cuda_image {
  const void *data;
  size_t size;
  bool cached;         /* it comes from the disk */
  uint64_t compile_ns; /* in NVRTC, else 0 */
};

/* Code for the architecture `arch`, "sm_90", from the cache on disk or from NVRTC, which is loaded if need
 * be. If NVRTC is older than the architecture, the image is PTX that the driver translates. False after an
 * error in `d`. */
bool cuda_program_compile(struct arena *a, const struct cuda_program *p, const char *arch,
                          struct cuda_image *out, struct diags *d);
/* The same as PTX text, for exactly this architecture. NULL after an error in `d`. */
const char *cuda_program_ptx(struct arena *a, const struct cuda_program *p, const char *arch,
                             struct diags *d);

/* backend.h's `emit`, as "cuda" or "ptx"; NULL for `arch` stands for sm_90. */
const char *cuda_emit(struct arena *a, const struct kernel *const *kernels, int count, const char *form,
                      const char *arch, struct diags *d);

#endif

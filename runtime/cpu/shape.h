/* SPDX-License-Identifier: Apache-2.0 */
/* Long kernels that differ in floats alone, as the first values of weights do, whose range follows from their sizes:
 * the code of one does for all. */
#ifndef DGC_RUNTIME_CPU_SHAPE_H
#define DGC_RUNTIME_CPU_SHAPE_H

#include "base/str.h"
#include "runtime/cpu/emit.h"

/* What is equal of kernels of one shape, in `a`; empty: nothing is shared of so short a kernel. */
struct str shape_of(struct arena *a, const struct kernel *k);

/* Several kernels of one shape as one that is given what they differ in: parameters behind its own. */
struct kernel_shape {
  struct kernel kernel;
  int count; /* of floats that it is given */
  struct {
    bool epilogue;
    int value;
  } given[MAX_GIVEN];
};
/* False if they differ in too many. `out` lives in `a`. */
bool shape_make(struct arena *a, const struct kernel *const *kernels, int n, struct kernel_shape *out);
/* What `k`, one of them, gives. */
void shape_given(const struct kernel_shape *s, const struct kernel *k, uint64_t *out);

#endif

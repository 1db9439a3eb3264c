/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a plan as code. */
#ifndef DGC_RUNTIME_COMPILED_H
#define DGC_RUNTIME_COMPILED_H

#include "runtime/backend.h"
#include "runtime/engines.h"
#include "runtime/pieces.h"

struct compiled;

/* Compiles what the devices of this process run, each backend what its own do, in `a`. NULL after an error. */
struct compiled *compile_kernels(struct arena *a, const struct engines *engines, const struct plan *p,
                                 struct diags *d);
/* Begins to, where a backend can, while the caller does something else: what is compiled later finds it. */
void foresee_kernels(const struct engines *engines, const struct plan *p);
/* The code of a kernel of the plan for the devices of a backend; NULL: it compiles none beforehand. */
kernel_fn *compiled_kernel(const struct compiled *c, const struct opened *o, const struct kernel *kernel);
/* A step whose kernel was compiled in segments, as pieces; NULL: it is none such. */
const struct pieces *compiled_segments(const struct compiled *c, const struct opened *o,
                                       const struct step *s);

#endif

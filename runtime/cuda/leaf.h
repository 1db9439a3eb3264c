/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves on GPUs: a function for each LEAF of ops.def, cuda_leaf_<op>, and one for all KERNELs, that fills in the
 * command of a step. */
#ifndef DGC_RUNTIME_CUDA_LEAF_H
#define DGC_RUNTIME_CUDA_LEAF_H

#include "ir/ops/leaf.h"
#include "runtime/cuda/engine.h"

/* The state lives in `a`. False after an error in `d`. */
typedef bool cuda_leaf_fn(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                          struct command *c, struct diags *d);
#define OP(name, spread)
#define LEAF(name, spread) cuda_leaf_fn cuda_leaf_##name;
#define KERNEL(name, spread)
#include "ir/ops/ops.def"
#undef OP
cuda_leaf_fn cuda_leaf_kernel; /* for all that kernels/cuda computes */

bool cuda_integer_product(struct cuda_engine *e, struct arena *a, const struct product *p, int device,
                          struct command *c, struct diags *d);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of kernels of bfloat16 convolutions by kernels/cpu/conv_amx_sums.c. */
#ifndef DGC_RUNTIME_CPU_CONV_AMX_SUMS_H
#define DGC_RUNTIME_CPU_CONV_AMX_SUMS_H

#include "runtime/cpu/leaf.h"

/* Whether it is the way for this step, on a machine whose units are used; then its command. */
bool cpu_conv_amx_sums(struct arena *a, const struct step *step, struct command *c);

#endif

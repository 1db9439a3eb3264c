/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of bfloat16 values by AMX, by code of our own. */
#ifndef DGC_RUNTIME_CPU_MATMUL_AMX_H
#define DGC_RUNTIME_CPU_MATMUL_AMX_H

#include "ir/ops/leaf.h"
#include "runtime/cpu/leaf.h"

/* Fills in the command, of so many nanoseconds; `still`: B is the same in all turns of a loop. False, and nothing is
 * done, if this processor or this product has another way. */
bool cpu_matmul_amx(struct arena *a, const struct product *size, int64_t cost, bool still, struct command *c);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bfloat16 values by AMX: outputs, and gradients by inputs. */
#ifndef DGC_RUNTIME_CPU_CONV_AMX_H
#define DGC_RUNTIME_CPU_CONV_AMX_H

#include "runtime/cpu/leaf.h"

/* Fills in the command; false, and nothing is done, if this processor or this shape has another way. */
bool cpu_conv_amx(struct arena *a, const struct step *step, struct command *c);

#endif

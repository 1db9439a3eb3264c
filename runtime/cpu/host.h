/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that code is made for. */
#ifndef DGC_RUNTIME_CPU_HOST_H
#define DGC_RUNTIME_CPU_HOST_H

#include "base/diag.h"
#include "base/str.h"

/* All that LLVM and its choice of instructions for this machine depend on, as text: the library's version and
 * file, what the processor says of itself. Found without LLVM; NULL where that is not known. */
const char *host_identity(struct arena *a);
/* Registers for vectors, and whether there is an instruction that multiplies and adds with one rounding. */
struct vector_registers {
  int bytes, count;
  bool fma;
};
/* The processor that $DGC_CPU says code is to be made for, one that this machine is or has all instructions of; NULL:
 * this machine itself. False after an error in `d`: there is no such processor. */
bool host_processor(const char **name, struct diags *d);
/* Of that processor. */
struct vector_registers host_vectors(void);

#endif

/* The machine that code is made for. */
#ifndef DGC_RUNTIME_CPU_HOST_H
#define DGC_RUNTIME_CPU_HOST_H

#include "base/str.h"

/* All that LLVM and its choice of instructions for this machine depend on, as text: the library's version and
 * file, what the processor says of itself. Found without LLVM; NULL where that is not known. */
const char *host_identity(struct arena *a);
/* Processors that this process may use. */
int host_cores(void);

#endif

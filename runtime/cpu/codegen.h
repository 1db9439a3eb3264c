/* Kernels to object code of this host, on all cores, through the cache. */
#ifndef DGC_RUNTIME_CPU_CODEGEN_H
#define DGC_RUNTIME_CPU_CODEGEN_H

#include "base/diag.h"
#include "ir/kernel.h"

#include <llvm-c/Types.h>

/* The machine that code is made for. */
struct host {
  const char *triple, *cpu, *features;
  const char *cache; /* a folder, or NULL for no cache */
  int cores;
};

/* One function to make. */
struct request {
  const struct kernel *kernel;
  const char *symbol;
};

/* Fills in `host`; its texts live in `a`. False and an error if there is no code generator for it. */
bool codegen_host(struct arena *a, struct host *host, struct diags *d);

/* Object files that hold all requests; their number is returned, -1 after an error. `objects` has room for one per
 * request; the caller owns them. `*cached` counts the requests whose code came from the cache. */
int codegen(const struct host *host, const struct request *requests, int n, LLVMMemoryBufferRef *objects,
            int *cached, struct diags *d);

#endif

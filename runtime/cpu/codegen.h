/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels to object code of this host, on all cores, through the cache. */
#ifndef DGC_RUNTIME_CPU_CODEGEN_H
#define DGC_RUNTIME_CPU_CODEGEN_H

#include "base/diag.h"
#include "ir/scalar/kernel.h"

#include <llvm-c/Types.h>

/* The machine that code is made for. */
struct host {
  struct arena *arena;
  const char *identity; /* all that code for it depends on */
  const char *cache;    /* a folder, or NULL for no cache */
  int cores;
  const char *triple, *cpu, *features; /* of LLVM; NULL before it is needed */
};

/* One function to make. */
struct request {
  const struct kernel *kernel;
  const char *symbol;
};

/* An object file, and which requests it holds. */
struct code {
  const char *data;
  size_t size;
  LLVMMemoryBufferRef owner; /* NULL: `data` lies in an arena */
  const int *requests;
  int count;
};
void code_dispose(struct code *c);

/* Fills in `host`; its texts live in `a`. False and an error if it cannot be told without LLVM, which fails. */
bool codegen_host(struct arena *a, struct host *host, struct diags *d);
/* Loads LLVM, if there is room for it. */
bool codegen_load(struct diags *d);
/* LLVM and its code generator for the host: loaded when code is not in the cache, or if asked. */
bool codegen_start(struct host *host, struct diags *d);

/* Object files that hold all requests; their number is returned, -1 after an error. `out` has room for one per
 * request, zeroed; the caller disposes of all, also after an error. `*cached` counts the requests whose code
 * came from the cache. */
int codegen(struct arena *a, struct host *host, const struct request *requests, int n, struct code *out,
            int *cached, struct diags *d);

#endif

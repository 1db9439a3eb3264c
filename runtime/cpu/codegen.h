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

/* Fills in `host`; its texts live in `a`, which is its alone: threads that generate code use it. False and an error if
 * it cannot be told without LLVM, which fails. */
bool codegen_host(struct arena *a, struct host *host, struct diags *d);
/* Loads LLVM, if there is room for it. */
bool codegen_load(struct diags *d);
/* LLVM and its code generator for the host: loaded when code is not in the cache, or if asked. */
bool codegen_start(struct host *host, struct diags *d);

/* Object files that hold all requests of one codegen_add. */
struct made {
  const struct request *requests;
  struct code *code;
  int count, cached; /* files; requests whose code came from the cache */
};

/* Code that is being made: what is not in the cache by other threads from when codegen_add returns, and by the caller,
 * too, in codegen_end, which waits for all. It is false after an error. Requests stay as they are until
 * codegen_dispose, with which all that was made goes; before codegen_end it ends what was begun. NULL is allowed. */
struct codegen;
struct codegen *codegen_create(struct host *host);
void codegen_add(struct codegen *w, const struct request *requests, int n);
bool codegen_end(struct codegen *w, struct diags *d);
/* What the codegen_add of this number asked for, from 0 on; NULL: there were no more. */
const struct made *codegen_made(const struct codegen *w, int number);
void codegen_dispose(struct codegen *w);

#endif

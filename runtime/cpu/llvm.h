/* SPDX-License-Identifier: Apache-2.0 */
/* LLVM, loaded on first need: its start costs 10 ms, and what is compiled already can do without. */
#ifndef DGC_RUNTIME_CPU_LLVM_H
#define DGC_RUNTIME_CPU_LLVM_H

#include "base/diag.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

/* Its functions, under their names without the prefix. NULL before llvm_load. */
#define LLVM(name) __typeof__(LLVM##name) *name;
extern struct llvm {
#include "runtime/cpu/llvm.def"
} llvm;
#undef LLVM

/* Loads LLVM and its code generator for this machine, once for the process; it is never unloaded. May be called
 * by several threads. False and an error that names the file if it cannot be loaded, then and ever after. */
bool llvm_load(struct diags *d);

#endif

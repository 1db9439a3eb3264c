/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels to LLVM IR: what loops.c (loops and memory) and scalar.c (one instruction) share.
 *
 * A value of a program is one scalar where it is the same for all lanes, else one vector of KERNEL_LANES lanes.
 * Integers and floats have their own width whatever the machine's: LLVM splits what is too wide. A bool is an i1
 * in registers and a byte, 0 or 1, in memory. */
#ifndef DGC_RUNTIME_CPU_EMIT_H
#define DGC_RUNTIME_CPU_EMIT_H

#include "ir/scalar/kernel.h"
#include "runtime/cpu/llvm.h"

struct emit {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
};

/* The type of `lanes` values in registers; one lane is a scalar. */
LLVMTypeRef emit_type(struct emit *e, enum dtype d, int lanes);
/* How they lie in memory: bool as i8. */
LLVMTypeRef emit_memory_type(struct emit *e, enum dtype d, int lanes);
/* `bits` in every lane. */
LLVMValueRef emit_const(struct emit *e, enum dtype d, uint64_t bits, int lanes);
LLVMValueRef emit_splat(struct emit *e, LLVMValueRef scalar);
/* 0, 1, ... KERNEL_LANES-1 as integers of `width` bits. */
LLVMValueRef emit_iota(struct emit *e, unsigned width);
/* A call of an overloaded intrinsic. */
LLVMValueRef emit_intrinsic(struct emit *e, const char *name, LLVMTypeRef *types, int ntypes,
                            LLVMValueRef *args, int nargs);
/* The number of lanes of a value. */
int emit_lanes(LLVMValueRef v);

/* One instruction; its operands have as many lanes as the result gets. `operand` is the dtype of `a` (of `b` for
 * S_SELECT). Not for S_CONST, S_ARG, S_INDEX and S_PARAM. */
LLVMValueRef emit_instruction(struct emit *e, const struct sinst *inst, enum dtype operand, LLVMValueRef a,
                              LLVMValueRef b, LLVMValueRef c);

/* The function `symbol` for one kernel; it has the type kernel_fn. Memory of its own is taken from `scratch`. */
LLVMValueRef emit_kernel(struct emit *e, const struct kernel *k, const char *symbol, struct arena *scratch);
/* For kernels that differ in floats alone (shape.h): their function `symbol`, which is given these behind its other
 * arguments; and the function for one of them, which calls that. */
enum { MAX_GIVEN = 8 };
LLVMValueRef emit_shape(struct emit *e, const struct kernel *k, int given, const char *symbol,
                        struct arena *scratch);
void emit_of_shape(struct emit *e, LLVMValueRef shape, const uint64_t *given, int count, const char *symbol);

#endif

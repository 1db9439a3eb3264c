/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: one loop nest around scalar programs. What the fuser produces and every backend compiles.
 *
 * map:     for i in loops:            out_k[i] = body.result[k](args[i])
 * reduce:  for o in outer loops:      acc_j = reduce over r in inner loops of body.result[j](args[o,r])
 *                                     out_k[o] = epilogue.result[k](args[o], acc_0, acc_1, ...)
 *                                     out_m[o,r] = body.result[m](args[o,r]): mapped, beside what is reduced
 *
 * A kernel says nothing of sizes: extents and strides are arguments, so that one compiled kernel serves all
 * batch sizes. What it does fix is everything that makes code fast: element types, the vector loop and the
 * stride class of each argument along it. */
#ifndef DGC_IR_SCALAR_KERNEL_H
#define DGC_IR_SCALAR_KERNEL_H

#include "ir/scalar/scalar.h"

enum kernel_kind { KERNEL_MAP, KERNEL_REDUCE };
enum reduce_op { REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ARGMAX, REDUCE_ARGMIN };
enum stride_class { STRIDE_ZERO, STRIDE_ONE, STRIDE_ANY }; /* along the vector loop, in elements */

#define MAX_FUSED_ARGS     24 /* of a kernel of a plan; a split of it has its sums beside them */
#define MAX_KERNEL_RESULTS 8
#define MAX_KERNEL_SUMS    4
#define MAX_KERNEL_ARGS    (MAX_FUSED_ARGS + MAX_KERNEL_SUMS)

struct kernel_arg {
  uint8_t dtype;
  uint8_t vector; /* enum stride_class along the vector loop */
  bool output;    /* outputs follow inputs in `args` */
};

struct kernel {
  enum kernel_kind kind;
  enum reduce_op reduce; /* KERNEL_REDUCE */
  int rank;              /* loops, outermost first; 1..MAX_RANK */
  int nreduce;           /* the last `nreduce` loops are reduced over; 0 for a map */
  int vector;            /* the loop that runs in vector lanes: any loop of a map; a kept or reduced one */
  /* Chunks of KERNEL_LANES that the vector loop has, if that is known: 1, 2, 4 for that many and more; else 0. On the
   * host such a loop stands before the others of a map, and takes so many at a time there and in column sums. */
  int strip;
  /* Elements of the vector loop, if it is the one that is reduced over and has a few; else 0. On the host lanes then
   * run along the innermost kept loop, along which args have the stride classes `rows`; the bits are the same. */
  int narrow;
  uint8_t rows[MAX_KERNEL_ARGS];
  int nsums;   /* accumulators of a reduce, all of one type; argmax and argmin have one; 0 for a map */
  int nmapped; /* how many of the outputs, the last ones, a reduce maps */
  int nargs, noutputs; /* args[0..nargs-noutputs) are read, the rest written */
  struct kernel_arg args[MAX_KERNEL_ARGS];
  /* Of args, bit l: the stride along loop l is 0, whatever the sizes; or it is not said. */
  uint8_t still[MAX_KERNEL_ARGS];
  struct sprog body; /* S_ARG: args; S_INDEX: loops */
  /* map: one value of `body` per output. reduce: first the `nsums` that are reduced, then one per mapped output */
  sval result[MAX_KERNEL_SUMS + MAX_KERNEL_RESULTS];
  /* reduce: S_ARG nargs + j is accumulator j (argmax/argmin: its i32 index along the one reduced loop);
   * other S_ARGs are read at the outer index. One value per output that is not mapped. */
  struct sprog epilogue;
  sval epilogue_result[MAX_KERNEL_RESULTS];
  int nparams;      /* S_PARAM count */
  uint64_t hash;    /* of everything above: equal hash and kernel_equal = the same compiled code */
  const char *name; /* of the first node that needed it, for symbols and dumps */
};

/* Reduction order, fixed by the extents alone, equal in every backend that promises bits: the reduced
 * loops run in order, outermost first. If the vector loop is one of them, the accumulator has 16 lanes,
 * lane = index along it mod 16, which are combined at the end as a binary tree (0+8, 1+9, ...; then 0+4
 * ...; 0+2; 0+1). An accumulator starts at the reduction's identity, and stays the first operand. sum and
 * prod of f32 accumulate in f32. argmax/argmin: the first of equals wins; NaN is larger (smaller) than
 * everything; 0 where there is nothing. */
#define KERNEL_LANES 16

/* What a reduction of no elements gives: the bits of its neutral element, zero-extended. */
uint64_t reduce_identity(enum reduce_op op, enum dtype d);
/* The primitive that joins two values of one that is no argmax or argmin. */
enum sop reduce_primitive(enum reduce_op op);
/* The type that a reduce accumulates in. */
enum dtype kernel_acc_dtype(const struct kernel *k);
/* How many values of `body` a kernel needs; how many outputs `epilogue` computes. */
static inline int kernel_results(const struct kernel *k) {
  return k->kind == KERNEL_MAP ? k->noutputs : k->nsums + k->nmapped;
}
static inline int kernel_reduced(const struct kernel *k) {
  return k->kind == KERNEL_MAP ? 0 : k->noutputs - k->nmapped;
}
/* Whether what is written to argument `output` may lie where argument `input` is read: not if it is mapped, and the
 * epilogue reads the input when all is written. */
bool kernel_may_overwrite(const struct kernel *k, int input, int output);
/* Whether a reduce gives a place, not a value: argmax or argmin. */
bool kernel_is_arg(const struct kernel *k);

/* Run time arguments of one launch, `int64_t sizes[]`: extents[rank], then for each arg strides[rank] (in
 * elements; outputs of a reduce have 0 on reduced loops, but for the mapped ones), then params[nparams]. */
static inline int kernel_nsizes(const struct kernel *k) { return k->rank + k->nargs * k->rank + k->nparams; }
/* Code that does a piece of a nest is told where that begins: behind them stand `rank` numbers more, which the indices
 * of each loop (S_INDEX) are greater by. In a plan they are 0. */
static inline int kernel_nlaunch(const struct kernel *k) { return kernel_nsizes(k) + k->rank; }

/* What a compiled kernel looks like to the executor. */
typedef void kernel_fn(void *const *args, const int64_t *sizes);

/* For functions that call one: clang's function sanitizer looks for a mark in front of the code, and compiled
 * kernels have none. */
#if defined(__clang__)
#define KERNEL_CALLER __attribute__((no_sanitize("function")))
#else
#define KERNEL_CALLER
#endif

/* sprog_order on both programs. Call it once they are recorded, before the kernel is hashed or printed. */
void kernel_settle(struct kernel *k);
bool kernel_equal(const struct kernel *a, const struct kernel *b);
/* A copy that shares nothing with k but its name, in `a`; its programs take no more instructions. */
struct kernel kernel_copy(struct arena *a, const struct kernel *k);
/* All that kernel_equal looks at, appended as bytes: equal bytes = kernel_equal. */
void kernel_bytes(struct str *s, const struct kernel *k);
void kernel_print(struct str *s, const struct kernel *k);
/* Runs the kernel on host memory with scalar_eval, in the documented order: slow and obvious. */
void kernel_eval(const struct kernel *k, void *const *args, const int64_t *sizes);
/* The same of a piece of a nest: see kernel_nlaunch. */
void kernel_eval_piece(const struct kernel *k, void *const *args, const int64_t *sizes);

#endif

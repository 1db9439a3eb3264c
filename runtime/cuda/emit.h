/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as CUDA C: what the loops (emit.c, reduce.c), single instructions (scalar.c) and the launches
 * (grid.c) share.
 *
 * A thread works on a batch of elements at a time, four where the body is light: so it has four loads under
 * way, and one access of up to 16 bytes where the elements lie next to each other. */
#ifndef DGC_RUNTIME_CUDA_EMIT_H
#define DGC_RUNTIME_CUDA_EMIT_H

#include "ir/scalar/kernel.h"

enum {
  CUDA_BATCH = 4,
  CUDA_MAP_THREADS = 128,
  CUDA_ROW_LANES = 256,   /* threads that reduce one row, at most */
  CUDA_COLUMN_LANES = 8,  /* likewise a column */
  CUDA_MAX_THREADS = 256, /* of a block: so many fit in whatever registers they need */
  CUDA_PIECE_BYTES = 16   /* of what a piece of a reduction gives, at most */
};

/* Into how many pieces the reduction of n elements is cut; the text of kernels has the same formulas. */
#define CUDA_ROW_PIECES    n <= 16384 ? 1 : n <= 4096 * 1024 ? (n + 4095) / 4096 : 1024
#define CUDA_COLUMN_PIECES n <= 256 ? 1 : n <= 128 * 1024 ? (n + 127) / 128 : 1024

/* How many elements a thread has under way: CUDA_BATCH, or 1 for heavy bodies. The order of a reduction is
 * the same for both. */
int cuda_batch(const struct kernel *k);
/* Whether the vector loop is one of the reduced ones, so that the elements of one result lie next to each
 * other. */
static inline bool cuda_sums_rows(const struct kernel *k) { return k->vector >= k->rank - k->nreduce; }

/* One kernel being written. */
struct cuda_writer {
  struct str *out;
  struct arena *scratch;
  const struct kernel *k;
  const char *name;
  int indent;
  const char *index[MAX_RANK];            /* how the index of a loop is spelled at this place */
  const char *value[MAX_KERNEL_ARGS + 1]; /* likewise an S_ARG */
};

/* One line; those that end in { and begin with } indent and outdent. */
void cuda_line(struct cuda_writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Declares the number of elements of loops first..last-1. */
void cuda_count(struct cuda_writer *w, const char *name, int first, int last);
/* Declares the indices i<loop> of the element number `at`; loops[0] is the slowest. `suffix`: "", or "[j]". */
void cuda_unflatten(struct cuda_writer *w, const char *at, const int *loops, int nloops, const char *suffix);
/* The element of argument `a` that the indices of the first `loops` loops say, as an expression. */
const char *cuda_element(struct cuda_writer *w, int a, int loops);
/* Declares the flag `wide`: a batch lies in one piece, aligned, in each of the arguments of this mask that
 * have stride one. False, and none, if there is no such argument. `nloops`: how many loops a batch runs
 * over. */
bool cuda_wide(struct cuda_writer *w, uint32_t args, int nloops);
/* Declares and loads the arguments of the mask `reads` as q<arg>, and the indices of `loops`, the last of
 * which is the vector loop if it can be wide. In scope are `first`, `hop` and `limit`: a batch is first,
 * first + hop, ... below limit; `full`, if it can be wide: whether all of it lies in one piece. */
void cuda_load_batch(struct cuda_writer *w, uint32_t reads, const int *loops, int nloops, bool can_be_wide);
/* The same for the one element at the present indices of the first `loops` loops. */
void cuda_load_one(struct cuda_writer *w, uint32_t reads, int loops);
/* Bit i: S_ARG i is needed for the results. */
uint32_t cuda_reads(struct arena *a, const struct sprog *p, const sval *results, int nresults);
/* The lines of a program; `into[r]` is set to how result r is spelled then. */
void cuda_program_lines(struct cuda_writer *w, const struct sprog *p, const sval *results, int nresults,
                        const char **into);
/* What stands in the functions of program.h. */
void cuda_map(struct cuda_writer *w);
void cuda_reduce(struct cuda_writer *w);
void cuda_join(struct cuda_writer *w);

/* Types of values and of memory; they differ for bool. */
const char *cuda_type(enum dtype d);
const char *cuda_memory(enum dtype d);
void cuda_constant(struct str *s, enum dtype d, uint64_t bits);
/* One instruction with operands as an expression. */
const char *cuda_expression(struct arena *a, const struct sinst *i, enum dtype operand, const char *x,
                            const char *y, const char *z);
/* The functions and types that `text` makes use of. */
void cuda_helpers(struct str *s, const char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost loop of a matrix product, as code for one size of tile: a block of C that stays in registers while k
 * goes by. Lanes run along n, so an element is one chain of fused multiply-adds over ascending k whatever the machine's
 * vectors are. */
#ifndef DGC_RUNTIME_CPU_TILE_H
#define DGC_RUNTIME_CPU_TILE_H

#include "ir/type.h"

#include <stdbool.h>
#include <stdint.h>

enum { MAX_TILE_ROWS = 24, MAX_TILE_VECTORS = 6, MAX_TILE_LANES = 16 };

struct tile {
  enum dtype dtype; /* f32 or f64 */
  int rows, vectors, lanes;
  bool columns;  /* elements of a column of A lie one behind the other, else those of a row */
  bool one_run;  /* k is one run */
  bool positive; /* what is 0 becomes +0 where C is written, and stays so where it is added to */
  int last; /* columns of the last vector, no more of which is read of B and written of C; 0: all lanes */
};

/* So many successive k whose A and B begin so many bytes behind those of the call. */
struct tile_run {
  int64_t a, b, count; /* count: at least 1 */
  int64_t line;        /* of patches: which of the kernel's lines it is in */
};

/* What a call is for, besides where A, B and C begin: the runs of k, at least one. In bytes: from the first row of A,
 * or its first column where it has columns, to another one; from a row of B, and of C, to the next; to the column of A,
 * where it has columns, and the row of B that a round asks for. */
struct tile_call {
  const struct tile_run *runs;
  int64_t nruns;
  int64_t row[MAX_TILE_ROWS];
  int64_t b_step, c_step;
  int64_t a_ahead, b_ahead;
  int64_t goes_on; /* sums begin with C, else with zeros */
  int64_t add;     /* C is added to at the end, else written */
};

/* C[rows, columns] = or += A[rows, k] B[k, columns]; k goes through the runs, one after the other. */
typedef void tile_fn(const void *a, const void *b, void *c, const struct tile_call *call);

#endif

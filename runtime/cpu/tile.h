/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost loop of a matrix product, as code for one size of tile: a block of C that stays in registers while k
 * goes by. Lanes run along n, so an element is one chain of fused multiply-adds over ascending k whatever the machine's
 * vectors are. */
#ifndef DGC_RUNTIME_CPU_TILE_H
#define DGC_RUNTIME_CPU_TILE_H

#include "base/str.h"
#include "ir/type.h"

#include <stdbool.h>
#include <stdint.h>

/* Rounds over k that are one iteration: runs of multiples of it are the fastest. */
enum { MAX_TILE_VECTORS = 6, TILE_ROUNDS = 4 };

struct tile {
  enum dtype dtype; /* f32 or f64 */
  int rows, vectors, lanes;
  bool columns;  /* elements of a column of A lie one behind the other, else those of a row */
  bool asks;     /* each run asks for a row of another tile's C */
  bool positive; /* what is 0 becomes +0 where C is written, and stays so where it is added to */
  int last; /* columns of the last vector, no more of which is read of B and written of C; 0: all lanes */
};

/* So many successive k whose A and B begin so many bytes behind those of the call; and the row that a tile which asks
 * asks for, behind c_ahead. */
struct tile_run {
  int64_t a, b, count; /* count: at least 1 */
  int64_t c;
  int64_t line; /* of patches: which of the kernel's lines it is in */
};

/* Where A, B and C begin, and the runs of k, at least one. In bytes: from a row of A, or a column where it has columns,
 * to the next, and from a row of B, and of C; to the column of A, where it has columns, and the row of B that a round
 * asks for; where C of another tile begins that runs ask for. */
struct tile_call {
  const void *a, *b;
  void *c;
  const struct tile_run *runs;
  int64_t nruns;
  int64_t a_step, b_step, c_step;
  int64_t a_ahead, b_ahead;
  const void *c_ahead;
  int64_t goes_on; /* sums begin with C, else with zeros */
  int64_t add;     /* C is added to at the end, else written */
};

/* C[rows, columns] = or += A[rows, k] B[k, columns]; k goes through the runs, one after the other. */
typedef void tile_fn(const struct tile_call *call);

/* Its machine code, for wherever it lies behind a multiple of TILE_ALIGNMENT. It takes as many registers as there are
 * sums, as many more as rows or vectors, whichever are fewer, and another; with 16 of them one is a mask. */
enum { TILE_ALIGNMENT = 64 };
struct str tile_assemble(struct arena *a, const struct tile *t);

#endif

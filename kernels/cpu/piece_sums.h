/* SPDX-License-Identifier: Apache-2.0 */
/* Long sums in the order of ir/ops: of pieces, joined as a tree. Pieces come in their order, and what waits for its
 * other half is as with a binary counter: one sum more than ones in the number of pieces before. */
#ifndef DGC_KERNELS_CPU_PIECE_SUMS_H
#define DGC_KERNELS_CPU_PIECE_SUMS_H

#include <stdint.h>

/* Sums lie one behind the other from `at` on: of `count` floats each, which have `size` bytes. */
struct piece_sums {
  void *at;
  int64_t count, size;
  int64_t pieces, waiting;
};

/* How many wait at most. */
int64_t piece_sums_levels(int64_t pieces);
/* Where the caller puts the sums of the next piece. */
void *piece_sums_next(struct piece_sums *s);
/* Behind the last piece: all sums as one, at `at`. */
void piece_sums_end(struct piece_sums *s);

/* to[i] = to[i] + from[i], floats of so many bytes. */
void sums_join(int64_t size, void *to, const void *from, int64_t count);

#endif

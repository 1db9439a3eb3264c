/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices copied into panels: so many columns one behind the other, then those of the next row. */
#ifndef DGC_KERNELS_CPU_PACK_H
#define DGC_KERNELS_CPU_PACK_H

#include <stdbool.h>
#include <stdint.h>

/* Element (l, j) of `rows` x `columns` goes to panel j / width, there to row l and place j % width. Bytes are between
 * panels and between the rows of one. Up to 8 bytes behind a row may be overwritten that are none of the panels'. */
struct panels {
  int64_t rows, columns, width;
  int64_t panel_step, row_step;
};

/* (l, j) lies at from[l * step + j]; with `transposed` at from[j * step + l]. `size`: bytes of an element, 4 or 8. */
void pack_panels(const struct panels *p, int size, bool transposed, const void *from, int64_t step, void *to);
/* to[i * rows + r] = from[r * step + i], of at most 8 rows and `count` numbers of each. Of `from` 8 rows are read, and
 * behind those of `to`, but not behind `end`, a few others may be overwritten. */
void turn_rows(int64_t rows, int64_t count, const float *from, int64_t step, float *to, const float *end);

#endif

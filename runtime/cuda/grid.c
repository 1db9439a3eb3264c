/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels are launched: blocks and threads for given sizes. Kernels run with any grid, as they stride along
 * it; the lanes and pieces of a reduction are part of its order, see reduce.c. */
#include "runtime/cuda/program.h"

#include "base/integer.h"
#include "runtime/cuda/emit.h"

enum { SMALL_BLOCK = 128, COLUMNS = 32, MAX_BLOCKS = 1 << 20 };

static int64_t row_pieces(int64_t n) { return CUDA_ROW_PIECES; }
static int64_t column_pieces(int64_t n) { return CUDA_COLUMN_PIECES; }

static int64_t count(const int64_t *extents, int first, int last) {
  int64_t n = 1;
  for (int l = first; l < last; l++) n *= extents[l];
  return n;
}

static unsigned blocks(int64_t n, int64_t per_block) {
  int64_t b = blocks_of(n, per_block);
  return (unsigned)(b < MAX_BLOCKS ? b : MAX_BLOCKS);
}

/* Threads that share the elements of a row: about two groups of four for each. */
static unsigned row_lanes(int64_t groups) {
  unsigned lanes = 1;
  while (lanes < CUDA_ROW_LANES && 2 * (int64_t)lanes < groups) lanes *= 2;
  return lanes;
}

/* Eight elements of a column for each, at least. */
static unsigned column_lanes(int64_t elements) {
  unsigned lanes = 1;
  while (lanes < CUDA_COLUMN_LANES && 16 * (int64_t)lanes <= elements) lanes *= 2;
  return lanes;
}

/* Lanes along x, results along y. */
static struct cuda_launch rows(enum cuda_entry entry, int64_t results, int64_t groups, unsigned pieces) {
  unsigned lanes = row_lanes(groups), slots = lanes < SMALL_BLOCK ? SMALL_BLOCK / lanes : 1;
  return (struct cuda_launch){entry, {blocks(results, slots), pieces, 1}, {lanes, slots, 1}};
}

/* Results along x, lanes along y. */
static struct cuda_launch columns(int64_t results, int64_t elements, unsigned pieces) {
  unsigned lanes = column_lanes(elements);
  unsigned slots = lanes * COLUMNS < SMALL_BLOCK ? SMALL_BLOCK / lanes : COLUMNS;
  return (struct cuda_launch){CUDA_MAIN, {blocks(results, slots), pieces, 1}, {slots, lanes, 1}};
}

static struct cuda_launch map(const struct kernel *k, int64_t n) {
  int64_t tile = (int64_t)CUDA_MAP_THREADS * cuda_batch(k);
  return (struct cuda_launch){CUDA_MAIN, {blocks(n, tile), 1, 1}, {CUDA_MAP_THREADS, 1, 1}};
}

int cuda_launches(const struct kernel *k, const int64_t *sizes, struct cuda_launch out[2], size_t *scratch) {
  int kept = k->rank - (k->kind == KERNEL_REDUCE ? k->nreduce : 0);
  int64_t results = count(sizes, 0, kept), reduced = count(sizes, kept, k->rank);
  *scratch = 0;
  if (results == 0) return 0;
  if (k->kind == KERNEL_MAP) {
    out[0] = map(k, results);
    return 1;
  }
  bool in_rows = cuda_sums_rows(k);
  int64_t pieces = in_rows ? row_pieces(reduced) : column_pieces(reduced);
  out[0] = in_rows
               ? rows(CUDA_MAIN, results, blocks_of(blocks_of(reduced, CUDA_BATCH), pieces), (unsigned)pieces)
               : columns(results, blocks_of(reduced, pieces), (unsigned)pieces);
  if (pieces == 1) return 1;
  out[1] = rows(CUDA_JOIN, results, pieces, 1);
  *scratch = (size_t)(results * pieces) * CUDA_PIECE_BYTES;
  return 2;
}

void cuda_add_set(struct cuda_launch *many, const struct cuda_launch *one) {
  unsigned most = one->grid[0] > many->grid[0] ? one->grid[0] : many->grid[0];
  *many = (struct cuda_launch){CUDA_MANY, {most, many->grid[1] + 1, 1}, {CUDA_MAP_THREADS, 1, 1}};
}

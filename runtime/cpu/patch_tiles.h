/* SPDX-License-Identifier: Apache-2.0 */
/* Patches as tiles read them (tile.h): of a product whose A they are, rows of C in strips along which the rows of A lie
 * equally far apart, and k in runs along which its numbers do. A strip is a line of pixels, or if A is transposed the
 * numbers of a patch that lie side by side; the runs are of the other. */
#ifndef DGC_RUNTIME_CPU_PATCH_TILES_H
#define DGC_RUNTIME_CPU_PATCH_TILES_H

#include "ir/ops/leaf.h"
#include "kernels/cpu/patches.h"
#include "runtime/cpu/tile.h"

enum { MOST_STRIPS = 64 };

struct patch_tiles {
  const struct patches *patches;
  bool transposed;
  struct patch_block block;
  int64_t strip, unit,
      cuts;     /* rows of a strip, and of a unit, `cuts` of which are a strip; the last may be shorter */
  int64_t run;  /* numbers of a patch that lie side by side */
  int64_t high; /* units at a time */
  size_t room;  /* bytes that copies need */
};

/* Rows of a strip, before tiles are chosen. */
int64_t patch_strip(const struct patches *p, bool transposed);
/* For tiles of so many rows; `most`: rows at a time, about. `part`: as many k as are asked for at once. */
struct patch_tiles patch_tiles_of(const struct patches *p, bool transposed, int64_t rows, int64_t most,
                                  int64_t part);
int64_t patch_units(const struct patch_tiles *t);
/* The first row of a unit, or the end. */
int64_t patch_row(const struct patch_tiles *t, int64_t unit);

/* Rows [top, bottom) of C, and where those of A begin. `meets`: what patches_met says of them. */
struct strip {
  const char *a;
  int64_t top, bottom;
  uint64_t meets;
};
/* Of units [first, end), at most t->high; the image or a copy in `room`. How many. */
int patch_strips(const struct patch_tiles *t, int64_t group, int64_t first, int64_t end, const char *image,
                 char *room, struct strip *out);
/* Of k from `k` on, at most PRODUCT_PIECE or `depth`. How many. */
int patch_runs(const struct patch_tiles *t, int64_t group, int64_t k, int64_t depth, const char *image,
               char *room, struct tile_run *out);
/* Those of `count` runs where the strip meets something, or the first, of zeros; how many. */
int patch_runs_met(const struct strip *strip, const struct tile_run *runs, int64_t count,
                   struct tile_run *out);

#endif

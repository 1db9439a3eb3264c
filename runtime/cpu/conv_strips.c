/* SPDX-License-Identifier: Apache-2.0 */
/* Products of patches, pixel by pixel, and of the few filters beside them: lanes run along what of a patch lies side
 * by side, and rows are filters, so that a vector is used for several of them. Sums are the transpose of what comes
 * out. */
#include "runtime/cpu/conv_strips.h"

#include "base/arena.h"
#include "base/integer.h"
#include "base/line.h"
#include "kernels/cpu/piece_sums.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/patch_tiles.h"

#include <string.h>

/* Pixels at a time, which stay in the first cache with what is copied for them; rows that are asked for ahead. */
enum { AT_ONCE = 128, AHEAD = 16 };

struct conv_strips {
  struct patch_tiles tiles;
  int64_t size, filters, lanes;       /* size: bytes of a number */
  int64_t strips, rows, columns;      /* of a tile: filters, numbers of a strip */
  int64_t room, wide;                 /* numbers of a strip of sums, whose rows are so long */
  int64_t levels;                     /* sums that wait at most */
  const struct tile_code *tile[2][2]; /* 1: of the last rows; 1: of the last columns */
};

/* Vectors and rows of a tile: what is loaded for all of them is least. Sums that do not wait for each other are
 * MANY at least, where there are so many. */
static void choose_tile(struct conv_strips *x, int registers) {
  enum { MANY = 8 };
  int64_t vectors = blocks_of(x->tiles.strip, x->lanes), least_loads = INT64_MAX;
  for (int64_t along = 1; along <= least(vectors, MAX_TILE_VECTORS); along++) {
    int64_t free = registers >= 32 ? 31 : 14, most = free / along - 1;
    if (most < along) most = free / (along + 1);
    if (most == 0) break;
    int64_t rows = blocks_of(x->filters, blocks_of(x->filters, most));
    int64_t tiles = blocks_of(vectors, along) * blocks_of(x->filters, rows), loads = tiles * (along + rows);
    if (along * rows < MANY) loads = loads * MANY / (along * rows);
    if (loads >= least_loads) continue;
    least_loads = loads, x->rows = rows, x->columns = along * x->lanes;
  }
}

static const struct tile_code *make_tile(const struct conv_strips *x, struct cpu_jit *jit, enum dtype dtype,
                                         bool last_rows, bool last_columns) {
  int64_t rows = last_rows ? x->filters % x->rows : x->rows;
  int64_t columns = last_columns ? x->tiles.strip % x->columns : least(x->columns, x->tiles.strip);
  if (rows == 0 || columns == 0) return NULL;
  struct tile t = {.dtype = dtype,
                   .rows = (int)rows,
                   .vectors = (int)blocks_of(columns, x->lanes),
                   .lanes = (int)x->lanes,
                   .columns = true,
                   .positive = true,
                   .last = (int)(columns % x->lanes)};
  return cpu_jit_tile(jit, &t);
}

const struct conv_strips *conv_strips_create(struct cpu_jit *jit, struct arena *a, const struct patches *p,
                                             int64_t filters) {
  struct vector_registers v = host_vectors();
  int64_t lanes = v.bytes / p->size, columns = patches_columns(p);
  if (filters == 0 || filters > lanes || patches_rows(p) == 0 || columns == 0) return NULL;
  struct conv_strips *x = arena_new(a, struct conv_strips);
  *x = (struct conv_strips){.size = p->size, .filters = filters, .lanes = lanes};
  x->tiles = patch_tiles_of(p, true, 1, columns, PRODUCT_PIECE);
  x->strips = patch_units(&x->tiles);
  if (x->tiles.strip <= lanes || x->tiles.cuts > 1 || x->strips > MOST_STRIPS) return NULL;
  choose_tile(x, v.count);
  x->room = blocks_of(x->tiles.strip, lanes) * lanes;
  x->wide = x->strips * x->room;
  x->levels = piece_sums_levels(blocks_of(patches_rows(p), PRODUCT_PIECE));
  for (int i = 0; i < 4; i++)
    x->tile[i & 1][i >> 1] = make_tile(x, jit, p->size == sizeof(float) ? DT_F32 : DT_F64, i & 1, i & 2);
  return x;
}

/* Sums and a copy of the image's lines. */
static int64_t sum_bytes(const struct conv_strips *x) { return x->filters * x->wide * x->size; }
size_t conv_strips_memory(const struct conv_strips *x) {
  return (size_t)(x->levels * sum_bytes(x)) + x->tiles.room + CACHE_LINE;
}

struct stripping {
  const struct conv_strips *x;
  const char *image, *beside; /* beside: of the group */
  char *copy;
  int64_t group, row; /* bytes from what is beside a pixel to the next */
  struct strip strips[MOST_STRIPS];
};

/* All tiles of a strip. */
static void run_strip(const struct stripping *w, struct tile_call *call, const char *a, const char *b,
                      char *sum) {
  const struct conv_strips *x = w->x;
  for (int64_t j = 0; j < x->tiles.strip; j += x->columns)
    for (int64_t i = 0; i < x->filters; i += x->rows) {
      call->a = a + i * x->size, call->b = b + j * x->size, call->c = sum + (i * x->wide + j) * x->size;
      x->tile[i + x->rows > x->filters][j + x->columns > x->tiles.strip]->fn(call);
    }
}

/* A piece, whose chains go on from some runs to the next. */
static void run_piece(const struct stripping *w, int64_t first, int64_t end, char *sum) {
  const struct conv_strips *x = w->x;
  struct tile_run runs[PRODUCT_PIECE];
  struct tile_call call = {.a_step = w->row,
                           .b_step = x->tiles.block.pixel,
                           .c_step = x->wide * x->size,
                           .a_ahead = AHEAD * w->row,
                           .b_ahead = AHEAD * x->tiles.block.pixel};
  int nruns = patch_runs(&x->tiles, w->group, first, end - first, w->image, w->copy, runs), done = 0;
  int64_t k = first;
  for (int i = 0; i < nruns; k += runs[i++].count) runs[i].b = runs[i].a, runs[i].a = k * w->row;
  for (int next; done < nruns; done = next) {
    int64_t pixels = 0;
    for (next = done; next < nruns && (pixels == 0 || pixels + runs[next].count <= AT_ONCE); next++)
      pixels += runs[next].count;
    call.runs = runs + done, call.nruns = next - done, call.goes_on = done > 0;
    for (int64_t s = 0; s < x->strips; s++)
      run_strip(w, &call, w->beside, w->strips[s].a, sum + s * x->room * x->size);
  }
}

/* out[patch, filter], whose rows are of all groups. */
#define DEFINE_PUT(name, T)                                                                   \
  static void name(const struct conv_strips *x, const void *sums, void *out) {                \
    int64_t row = x->tiles.patches->groups * x->filters;                                      \
    const T *from = sums;                                                                     \
    T *to = out;                                                                              \
    for (int64_t s = 0; s < x->strips; s++, from += x->room, to += x->tiles.strip * row)      \
      for (int64_t f = 0; f < x->filters; f++)                                                \
        for (int64_t i = 0; i < x->tiles.strip; i++) to[i * row + f] = from[f * x->wide + i]; \
  }
DEFINE_PUT(put_f32, float)
DEFINE_PUT(put_f64, double)

void conv_strips_run(const struct conv_strips *x, const void *image, const void *beside, void *out,
                     int64_t first, int64_t end, void *memory) {
  char *at = line_from(memory);
  int64_t size = x->levels * sum_bytes(x), groups = x->tiles.patches->groups, each = x->filters * x->size;
  for (int64_t g = 0; g < groups; g++) {
    struct stripping w = {x, image, (const char *)beside + g * each, at + size, g, groups * each, {{0}}};
    struct piece_sums sums = {.at = at, .count = x->filters * x->wide, .size = x->size};
    patch_strips(&x->tiles, g, 0, x->strips, image, w.copy, w.strips);
    if (x->room != x->tiles.strip) memset(at, 0, (size_t)size); /* lanes that no tile writes */
    for (int64_t k = first; k < end; k += PRODUCT_PIECE)
      run_piece(&w, k, least(k + PRODUCT_PIECE, end), piece_sums_next(&sums));
    piece_sums_end(&sums);
    (x->size == sizeof(float) ? put_f32 : put_f64)(x, at, (char *)out + g * each);
  }
}

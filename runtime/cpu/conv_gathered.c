/* SPDX-License-Identifier: Apache-2.0 */
/* Patches of few numbers as rows of a matrix that is made, some pixels at a time, from a copy of an image that has a
 * border of zeros. Lanes run along the patches or along the filters, whichever takes fewer vectors. */
#include "runtime/cpu/conv_gathered.h"

#include "base/arena.h"
#include "base/integer.h"
#include "base/line.h"
#include "ir/ops/leaf.h"
#include "kernels/cpu/piece_sums.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/tile.h"

#include <string.h>

/* Numbers of a patch and filters at most; pixels that are gathered at once; numbers that are copied for a line of the
 * kernel, some of which may be too many; pixels that are asked for ahead. */
enum { MOST_PATCH = 32, MOST_FILTERS = 16, AT_ONCE = 128, COPIED = 8, MOST_IMAGE = 32 << 10, AHEAD = 32 };

struct conv_gathered {
  const struct patches *patches;
  const struct tile_code *tile[2]; /* 1: of the last rows */
  bool turned;                     /* lanes run along the patches, rows are filters */
  int64_t patch, filters;
  int64_t row;             /* numbers from a patch that is gathered to the next */
  int64_t rows, all, wide; /* of a tile, of the sums, whose rows are so far apart */
  int64_t slots, down;     /* numbers of a line of a copy, and lines */
  int64_t levels;          /* sums that wait at most */
};

static bool is_for(const struct patches *p, int64_t filters) {
  const struct patch_axis *a = p->axis;
  int64_t patch = patches_columns(p);
  return p->size == sizeof(float) && p->groups == 1 && p->batch > 0 && filters > 0 &&
         filters <= MOST_FILTERS && patch > 0 && patch <= MOST_PATCH && a[2].places * p->terms <= COPIED &&
         a[0].pixels == 1 && a[0].places == 1 && a[0].image == 1 && a[0].low == 0 &&
         patch_axis_is_plain(&a[1]) && patch_axis_is_plain(&a[2]) && a[2].by_place == 1 &&
         patch_axis_reach(&a[1]) <= MOST_IMAGE && patch_axis_reach(&a[2]) <= MOST_IMAGE &&
         patch_axis_reach(&a[1]) * patch_axis_reach(&a[2]) * p->terms <= MOST_IMAGE;
}

const struct conv_gathered *conv_gathered_create(struct cpu_jit *jit, struct arena *a,
                                                 const struct patches *p, int64_t filters) {
  struct vector_registers v = host_vectors();
  int64_t lanes = v.bytes / (int64_t)sizeof(float), patch = patches_columns(p);
  if (!is_for(p, filters)) return NULL;
  bool turned = filters * blocks_of(patch, lanes) < patch * blocks_of(filters, lanes);
  int64_t along = turned ? patch : filters, all = turned ? filters : patch, vectors = blocks_of(along, lanes);
  int64_t most = (v.count >= 32 ? 28 : 12) / (vectors > 0 ? vectors : 1);
  if (vectors > 3) most = v.count >= 32 ? 26 / vectors : 10 / vectors;
  if (vectors > MAX_TILE_VECTORS || most == 0) return NULL;
  struct conv_gathered *x = arena_new(a, struct conv_gathered);
  *x = (struct conv_gathered){.patches = p,
                              .turned = turned,
                              .patch = patch,
                              .filters = filters,
                              .row = blocks_of(patch + COPIED, COPIED) * COPIED,
                              .rows = blocks_of(all, blocks_of(all, most)),
                              .all = all,
                              .wide = vectors * lanes,
                              .slots = patch_axis_reach(&p->axis[2]) * p->terms,
                              .down = patch_axis_reach(&p->axis[1]),
                              .levels = piece_sums_levels(blocks_of(patches_rows(p), PRODUCT_PIECE))};
  for (int last = 0; last < 2; last++) {
    struct tile t = {.dtype = DT_F32,
                     .rows = (int)(last ? all % x->rows : x->rows),
                     .vectors = (int)vectors,
                     .lanes = (int)lanes,
                     .columns = true,
                     .positive = true,
                     .last = turned ? 0 : (int)(filters % lanes)};
    if (t.rows > 0) x->tile[last] = cpu_jit_tile(jit, &t);
  }
  return x;
}

/* A sum, a copy of an image and patches, behind both of which some numbers are read or written. */
static int64_t sum_size(const struct conv_gathered *x) { return x->all * x->wide; }
static int64_t copy_size(const struct conv_gathered *x) {
  return round_up(x->slots * x->down + COPIED, CACHE_LINE);
}
size_t conv_gathered_memory(const struct conv_gathered *x) {
  int64_t patches = AT_ONCE * x->row + MOST_PATCH + COPIED;
  return (size_t)(x->levels * sum_size(x) + copy_size(x) + patches) * sizeof(float) + CACHE_LINE;
}

/* Over the border of zeros that is there. */
static void lay(const struct conv_gathered *x, const float *image, float *copy) {
  const struct patch_axis *down = &x->patches->axis[1], *along = &x->patches->axis[2];
  int64_t terms = x->patches->terms, slots = x->slots / terms;
  int64_t left = along->low > 0 ? along->low : 0, right = least(along->image, slots + along->low);
  for (int64_t i = 0; i < x->down && left < right; i++) {
    int64_t line = i + down->low;
    if (line < 0 || line >= down->image) continue;
    memcpy(copy + (i * slots + left - along->low) * terms, image + (line * along->image + left) * terms,
           (size_t)((right - left) * terms) * sizeof *copy);
  }
}

/* `count` pixels of a line, of which each kernel's line writes over what the one before has written too much. */
static void gather(const struct conv_gathered *x, const float *from, int64_t count, float *to) {
  const struct patch_axis *down = &x->patches->axis[1];
  int64_t terms = x->patches->terms, run = x->patches->axis[2].places * terms, row = x->row;
  for (int64_t k = 0; k < down->places; k++) {
    const float *y = from + k * down->by_place * x->slots;
    float *z = to + k * run;
    for (int64_t i = 0; i < count; i++, y += terms, z += row) memcpy(z, y, COPIED * sizeof *z);
  }
}

struct gathering {
  const struct conv_gathered *x;
  const float *image;
  float *copy, *patches;
  int64_t held; /* the image that the copy is of; -1: none */
};

/* Patches of pixels [first, end), batch and all. */
static void gather_pixels(struct gathering *w, int64_t first, int64_t end) {
  const struct patch_axis *a = w->x->patches->axis;
  int64_t image = a[1].image * a[2].image * w->x->patches->terms, line = a[2].pixels;
  float *to = w->patches;
  for (int64_t stop; first < end; first = stop) {
    int64_t n = first / line / a[1].pixels, p1 = first / line % a[1].pixels, p2 = first % line;
    stop = least(first - p2 + line, end);
    if (n != w->held) lay(w->x, w->image + n * image, w->copy), w->held = n;
    gather(w->x, w->copy + p1 * w->x->slots + p2 * w->x->patches->terms, stop - first, to);
    to += (stop - first) * w->x->row;
  }
}

/* A piece, whose chains go on from some pixels to the next. */
static void run_piece(struct gathering *w, const float *beside, int64_t first, int64_t end, float *sum) {
  const struct conv_gathered *x = w->x;
  int64_t size = (int64_t)sizeof(float), begin = first;
  for (int64_t stop; first < end; first = stop) {
    stop = least(first + AT_ONCE, end);
    gather_pixels(w, first, stop);
    const float *pixels = beside + first * x->filters, *a = x->turned ? pixels : w->patches;
    struct tile_run run = {.count = stop - first};
    struct tile_call call = {.runs = &run,
                             .nruns = 1,
                             .b = x->turned ? w->patches : pixels,
                             .a_step = (x->turned ? x->filters : x->row) * size,
                             .b_step = (x->turned ? x->row : x->filters) * size,
                             .c_step = x->wide * size,
                             .goes_on = first > begin};
    call.a_ahead = (x->turned ? AHEAD : 0) * call.a_step,
    call.b_ahead = (x->turned ? 0 : AHEAD) * call.b_step;
    for (int64_t i = 0; i < x->all; i += x->rows) {
      call.a = a + i, call.c = sum + i * x->wide;
      x->tile[i + x->rows > x->all]->fn(&call);
    }
  }
}

void conv_gathered_run(const struct conv_gathered *x, const float *image, const float *beside, float *out,
                       int64_t first, int64_t end, void *memory) {
  float *at = line_from(memory), *copy = at + x->levels * sum_size(x);
  struct piece_sums sums = {.at = at, .count = sum_size(x), .size = sizeof *at};
  struct gathering w = {x, image, copy, copy + copy_size(x), -1};
  memset(copy, 0, (size_t)copy_size(x) * sizeof *copy);
  if (first >= end) memset(at, 0, (size_t)sum_size(x) * sizeof *at);
  for (; first < end; first += PRODUCT_PIECE)
    run_piece(&w, beside, first, least(first + PRODUCT_PIECE, end), piece_sums_next(&sums));
  piece_sums_end(&sums);
  for (int64_t i = 0; i < x->patch; i++)
    for (int64_t f = 0; f < x->filters; f++)
      out[i * x->filters + f] = x->turned ? at[f * x->wide + i] : at[i * x->wide + f];
}

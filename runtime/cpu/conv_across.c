/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes along pixels. Of an image each term has a plane of its own, with a border of zeros: its numbers under one place
 * of the kernel lie side by side for all pixels of a line, and for those of the next lines further on. Tiles (tile.h)
 * have the numbers of a pixel as rows, of few lines or of a part of one, and are turned around when they are done. What
 * is computed between lines is not used. */
#include "runtime/cpu/conv_across.h"

#include "base/arena.h"
#include "base/integer.h"
#include "base/line.h"
#include "ir/ops/leaf.h"
#include "kernels/cpu/pack.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/tile.h"

#include <string.h>

/* Images are shared by threads; a tile fills the registers, but for what it loads. Planes stay in the second cache. */
enum { LEAST_IMAGES = 8, MOST_COLUMNS = 8, CHAINS = 8, MOST_ROOM = 128 << 10 };

struct conv_across {
  const struct patches *patches;
  const struct tile_code *tile;
  int64_t columns;
  int64_t wide, lines;        /* pixels of a tile, and lines that it has something of */
  int64_t slots, down, plane; /* numbers of a line, lines and numbers of a plane */
};

static bool is_for(const struct patches *p, int64_t columns) {
  const struct patch_axis *a = p->axis;
  int64_t most = MOST_ROOM / (int64_t)sizeof(float);
  return p->size == sizeof(float) && p->groups == 1 && p->batch >= LEAST_IMAGES && columns <= MOST_COLUMNS &&
         columns > 0 && a[0].pixels == 1 && a[0].places == 1 && a[0].image == 1 && a[0].low == 0 &&
         patch_axis_is_plain(&a[1]) && patch_axis_is_plain(&a[2]) && patches_columns(p) > 0 &&
         patches_columns(p) <= PRODUCT_PIECE && patch_axis_reach(&a[1]) <= most &&
         patch_axis_reach(&a[2]) <= most &&
         patch_axis_reach(&a[1]) * patch_axis_reach(&a[2]) * p->terms <= most;
}

/* As many vectors as waste the fewest lanes, and have chains enough. */
static int choose(struct conv_across *x, const struct vector_registers *v) {
  int64_t lanes = v->bytes / (int64_t)sizeof(float), pixels = x->patches->axis[2].pixels;
  int64_t most = v->count >= 32 ? 28 : 12;
  double best = 0;
  int chosen = 0;
  for (int vectors = 1; vectors <= MAX_TILE_VECTORS; vectors++) {
    int64_t wide = vectors * lanes, sums = vectors * x->columns, lines = 1;
    if (sums > most - (x->columns < vectors ? 2 : 0)) break;
    if (wide > pixels) lines = least(1 + (wide - pixels) / x->slots, x->patches->axis[1].pixels);
    double use = (double)(lines * pixels) / (double)(blocks_of(pixels, wide) * wide);
    if (sums < CHAINS) use *= (double)sums / CHAINS;
    if (use >= best) best = use, chosen = vectors, x->wide = wide, x->lines = lines;
  }
  return chosen;
}

const struct conv_across *conv_across_create(struct cpu_jit *jit, struct arena *a, const struct patches *p,
                                             int64_t columns) {
  struct vector_registers v = host_vectors();
  if (!is_for(p, columns)) return NULL;
  struct conv_across *x = arena_new(a, struct conv_across);
  *x = (struct conv_across){.patches = p,
                            .columns = columns,
                            .slots = patch_axis_reach(&p->axis[2]),
                            .down = patch_axis_reach(&p->axis[1])};
  int vectors = choose(x, &v);
  if (vectors == 0) return NULL;
  x->plane = x->slots * x->down + CACHE_LINE / (int64_t)sizeof(float);
  struct tile t = {.dtype = DT_F32,
                   .rows = (int)columns,
                   .vectors = vectors,
                   .lanes = v.bytes / (int)sizeof(float),
                   .columns = true,
                   .positive = true};
  x->tile = cpu_jit_tile(jit, &t);
  return x;
}

/* Planes, behind the last of which a tile may read, and a tile's sums. */
size_t conv_across_memory(const struct conv_across *x) {
  return (size_t)(x->plane * x->patches->terms + x->wide + x->wide * MOST_COLUMNS) * sizeof(float) +
         CACHE_LINE;
}

/* An image into its planes, whose borders are zeros already. */
static void lay(const struct conv_across *x, const float *image, float *planes) {
  const struct patch_axis *down = &x->patches->axis[1], *along = &x->patches->axis[2];
  int64_t terms = x->patches->terms, size = (int64_t)sizeof(float);
  int64_t left = along->low > 0 ? along->low : 0, right = least(along->image, x->slots + along->low);
  struct panels panels = {terms, right - left, right - left, 0, x->plane * size};
  if (left >= right) return;
  for (int64_t i = 0; i < x->down; i++) {
    int64_t line = i + down->low;
    if (line < 0 || line >= down->image) continue;
    const float *from = image + (line * along->image + left) * terms;
    float *to = planes + i * x->slots + left - along->low;
    if (terms == 1)
      memcpy(to, from, (size_t)((right - left) * size));
    else
      pack_panels(&panels, (int)size, true, from, terms, to);
  }
}

/* What pixels of lines [line, end) meet: of one term a run is a line of the kernel, else a place. What meets nothing is
 * left out, but for one run, of zeros. */
static int64_t find_runs(const struct conv_across *x, int64_t line, int64_t end, struct tile_run *out) {
  const struct patches *p = x->patches;
  const struct patch_axis *down = &p->axis[1], *along = &p->axis[2];
  int64_t count = 0, size = (int64_t)sizeof(float), row = p->terms * x->columns * size;
  for (int64_t k1 = 0; k1 < down->places; k1++) {
    int64_t first = line + k1 * down->by_place + down->low;
    bool meets = first + (end - line) > 0 && first < down->image;
    if (!meets && (k1 < down->places - 1 || count > 0)) continue;
    for (int64_t k2 = 0; k2 < along->places; k2++) {
      out[count++] = (struct tile_run){.a = (k1 * along->places + k2) * row,
                                       .b = (k1 * down->by_place * x->slots + k2 * along->by_place) * size,
                                       .count = p->terms == 1 ? along->places : p->terms};
      if (p->terms == 1) break;
    }
  }
  return count;
}

static void run_image(const struct conv_across *x, const float *planes, const float *matrix, float *sums,
                      float *out, const float *end) {
  const struct patches *p = x->patches;
  struct tile_run runs[PRODUCT_PIECE];
  int64_t size = (int64_t)sizeof(float), height = p->axis[1].pixels, pixels = p->axis[2].pixels;
  struct tile_call call = {.runs = runs,
                           .a = matrix,
                           .c = sums,
                           .a_step = x->columns * size,
                           .b_step = (p->terms == 1 ? p->axis[2].by_place : x->plane) * size,
                           .c_step = x->wide * size};
  for (int64_t line = 0; line < height; line += x->lines) {
    int64_t lines = least(x->lines, height - line);
    call.nruns = find_runs(x, line, line + lines, runs);
    for (int64_t at = 0; at < pixels; at += x->wide) {
      call.b = planes + line * x->slots + at;
      x->tile->fn(&call);
      for (int64_t i = 0; i < lines; i++)
        turn_rows(x->columns, least(x->wide, pixels - at), sums + i * x->slots, x->wide,
                  out + ((line + i) * pixels + at) * x->columns, end);
    }
  }
}

void conv_across_run(const struct conv_across *x, const float *image, const float *matrix, float *out,
                     int64_t first, int64_t end, void *memory) {
  const struct patch_axis *a = x->patches->axis;
  int64_t result = a[1].pixels * a[2].pixels * x->columns, size = a[1].image * a[2].image * x->patches->terms;
  float *sums = line_from(memory), *planes = sums + x->wide * MOST_COLUMNS;
  memset(sums, 0, conv_across_memory(x) - CACHE_LINE);
  for (int64_t n = first; n < end; n++) {
    lay(x, image + n * size, planes);
    run_image(x, planes, matrix, sums, out + n * result, out + end * result);
  }
}

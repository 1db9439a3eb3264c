/* SPDX-License-Identifier: Apache-2.0 */
/* Strips and runs of patches. Of pixels so many lines are copied at once that a copy stays in the first cache, and of
 * long lines a part. */
#include "runtime/cpu/patch_tiles.h"

#include "base/integer.h"

enum { COPY = 32 << 10, LEAST_PIXELS = 64, LONG = 256 };

/* Blocks of k have so many pixels of a line. */
static int64_t pixels_of_k(const struct patches *p) { return least(p->axis[2].pixels, LONG); }

int64_t patch_strip(const struct patches *p, bool transposed) {
  struct patch_block b = patches_block(p, 1, pixels_of_k(p));
  return transposed ? patches_run(p, &b) * p->terms : p->axis[2].pixels;
}

/* Lines of a block that is copied for rows of C. */
static void choose_lines(struct patch_tiles *t, int64_t most) {
  const struct patches *p = t->patches;
  int64_t pixels = t->cuts > 1 ? t->unit : t->strip,
          fewest = t->cuts > 1 ? 1 : blocks_of(LEAST_PIXELS, pixels), count;
  t->high = t->cuts > 1 ? 1 : greatest(least(most / pixels, MOST_STRIPS), fewest);
  for (;; t->high--) {
    t->block = patches_block(p, least(t->high, p->axis[1].pixels), pixels);
    count = blocks_of(t->high, t->block.lines);
    if (t->high <= fewest || count * (int64_t)t->block.bytes <= COPY) break;
  }
  t->room = (size_t)(count + 1) * t->block.bytes;
}

/* Of those that are copied for k: `part` pixels are as many lines and one more, or lie in so many long ones. */
static void choose_pixels(struct patch_tiles *t, int64_t most, int64_t part) {
  const struct patches *p = t->patches;
  int64_t line = p->axis[2].pixels, lines = part / line + 2;
  t->high = greatest(least(most / t->unit, MOST_STRIPS), 1);
  if (line > LONG) {
    t->block = patches_block(p, 1, pixels_of_k(p));
    t->room = (size_t)(part / LONG + lines + 1) * t->block.bytes;
  } else {
    t->block = patches_block(p, least(lines, p->axis[1].pixels), pixels_of_k(p));
    t->room = (size_t)(lines / t->block.lines + 2) * t->block.bytes;
  }
}

struct patch_tiles patch_tiles_of(const struct patches *p, bool transposed, int64_t rows, int64_t most,
                                  int64_t part) {
  struct patch_tiles t = {
      .patches = p, .transposed = transposed, .strip = patch_strip(p, transposed), .cuts = 1};
  t.unit = t.strip = greatest(t.strip, 1);
  int64_t longest = transposed ? most : LONG;
  if (t.strip > longest) {
    t.unit = blocks_of(blocks_of(t.strip, blocks_of(t.strip, longest)), rows) * rows;
    t.cuts = blocks_of(t.strip, t.unit);
  }
  if (patches_rows(p) == 0 || patches_columns(p) == 0) return t;
  if (transposed)
    choose_pixels(&t, most, part);
  else
    choose_lines(&t, most);
  t.run = patches_run(p, &t.block) * p->terms;
  return t;
}

int64_t patch_units(const struct patch_tiles *t) {
  const struct patches *p = t->patches;
  if (!t->transposed && patches_rows(p) == 0) return 0;
  return (t->transposed ? patches_columns(p) / t->strip : patches_lines(p)) * t->cuts;
}

int64_t patch_row(const struct patch_tiles *t, int64_t unit) {
  return unit / t->cuts * t->strip + least(unit % t->cuts * t->unit, t->strip);
}

/* Where run `number` of a patch begins, behind its first place. */
static int64_t place_at(const struct patch_tiles *t, int64_t number) {
  const struct patch_axis *a = t->patches->axis;
  int64_t runs = a[2].places * t->patches->terms / t->run, k2 = number % runs * (a[2].places / runs);
  int64_t k1 = number / runs % a[1].places, k0 = number / runs / a[1].places;
  return k0 * t->block.place[0] + k1 * t->block.place[1] + k2 * t->block.place[2];
}

/* Lines of a plane that begin with `line`, not more than `most`. */
static int64_t lines_from(const struct patch_tiles *t, int64_t line, int64_t most) {
  int64_t plane = t->patches->axis[1].pixels;
  return least(least(plane - line % plane, most), t->block.lines);
}

int patch_strips(const struct patch_tiles *t, int64_t group, int64_t first, int64_t end, const char *image,
                 char *room, struct strip *out) {
  const char *a = NULL;
  int count = 0;
  for (int64_t u = first, left = 0; u < end; u++, left--) {
    struct strip *s = &out[count++];
    *s = (struct strip){NULL, patch_row(t, u), patch_row(t, u + 1), ALL_LINES};
    if (t->transposed) {
      s->a = (t->block.bytes ? room : image) + place_at(t, u / t->cuts) +
             u % t->cuts * t->unit * t->patches->size;
      continue;
    }
    s->meets = patches_met(t->patches, u / t->cuts);
    if (left == 0) {
      left = t->cuts > 1 ? 1 : lines_from(t, u, end - u);
      struct patch_area area = {group, u / t->cuts, left, u % t->cuts * t->unit, s->bottom - s->top};
      a = patches_lay(t->patches, &t->block, &area, image, room);
      room += t->block.bytes;
    } else
      a += t->block.line;
    s->a = a;
  }
  return count;
}

/* Runs along patches. */
static int runs_of_places(const struct patch_tiles *t, int64_t k, int64_t end, struct tile_run *out) {
  int64_t line = t->patches->axis[2].places * t->patches->terms;
  int count = 0;
  for (int64_t stop; k < end; k = stop) {
    stop = least((k / t->run + 1) * t->run, end);
    out[count++] = (struct tile_run){
        .a = place_at(t, k / t->run) + k % t->run * t->patches->size, .count = stop - k, .line = k / line};
  }
  return count;
}

int patch_runs(const struct patch_tiles *t, int64_t group, int64_t k, int64_t depth, const char *image,
               char *room, struct tile_run *out) {
  if (!t->transposed) return runs_of_places(t, k, k + depth, out);
  const struct patches *p = t->patches;
  const char *from = t->block.bytes ? room : image;
  int64_t line = p->axis[2].pixels, end = k + depth;
  int count = 0;
  while (k < end) {
    int64_t first = k / line, lines = lines_from(t, first, (end - 1) / line - first + 1);
    struct patch_area area = {group, first, lines, 0, line};
    if (line > LONG) area.pixel = k % line, area.pixels = least(least(line - k % line, end - k), LONG);
    const char *a = patches_lay(p, &t->block, &area, image, room);
    room += t->block.bytes;
    for (int64_t i = 0, stop; i < lines; i++, a += t->block.line, k = stop) {
      int64_t skipped = k % line - area.pixel;
      stop = least(k + area.pixels - skipped, end);
      out[count++] = (struct tile_run){.a = a - from + skipped * t->block.pixel, .count = stop - k};
    }
  }
  return count;
}

int patch_runs_met(const struct strip *strip, const struct tile_run *runs, int64_t count,
                   struct tile_run *out) {
  int met = 0;
  for (int64_t i = 0; i < count; i++)
    if (strip->meets >> runs[i].line & 1) out[met++] = runs[i];
  if (met == 0) out[met++] = runs[0];
  return met;
}

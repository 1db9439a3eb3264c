/* SPDX-License-Identifier: Apache-2.0 */
/* Patches where they lie: in the image, or in a copy of some of its lines that has a border of zeros. */
#include "kernels/cpu/patches.h"

#include <string.h>

static struct patch_axis axis_of(const struct conv_numbers *s, int i) {
  if (s->result == 0)
    return (struct patch_axis){.pixels = s->input[i],
                               .places = s->kernel[i],
                               .image = s->output[i],
                               .by_pixel = s->input_dilation[i],
                               .by_place = s->kernel_dilation[i],
                               .low = s->low[i] - (s->kernel[i] - 1) * s->kernel_dilation[i],
                               .gap = s->stride[i]};
  return (struct patch_axis){.pixels = s->output[i],
                             .places = s->kernel[i],
                             .image = s->input[i],
                             .by_pixel = s->stride[i],
                             .by_place = s->kernel_dilation[i],
                             .low = -s->low[i],
                             .gap = s->input_dilation[i]};
}

struct patches patches_of(const struct conv_numbers *s, int64_t size) {
  struct patches p = {.batch = s->batch,
                      .terms = s->result == 0 ? s->filters : s->channels,
                      .groups = s->groups,
                      .size = size};
  for (int i = 0; i < 3; i++) p.axis[i] = axis_of(s, i);
  return p;
}

int64_t patches_rows(const struct patches *p) {
  return p->batch * p->axis[0].pixels * p->axis[1].pixels * p->axis[2].pixels;
}

int64_t patches_columns(const struct patches *p) {
  return p->axis[0].places * p->axis[1].places * p->axis[2].places * p->terms;
}

bool patches_have_gaps(const struct patches *p) {
  for (int i = 0; i < 3; i++) {
    const struct patch_axis *a = &p->axis[i];
    int64_t last = (a->pixels - 1) * a->by_pixel + (a->places - 1) * a->by_place + a->low;
    if (a->gap != 1 || a->low < 0 || last >= a->image) return true;
  }
  return false;
}

bool patches_are_image(const struct patches *p) {
  for (int i = 0; i < 3; i++) {
    const struct patch_axis *a = &p->axis[i];
    if (a->places != 1 || a->low != 0 || a->by_pixel != 1 || a->gap != 1 || a->pixels != a->image)
      return false;
  }
  return p->groups == 1;
}

int64_t patches_lines(const struct patches *p) { return p->batch * p->axis[0].pixels * p->axis[1].pixels; }

/* Of an axis, how much the pixels before `pixel` meet; about. */
static int64_t met_before(const struct patch_axis *a, int64_t pixel) {
  int64_t last = ((pixel - 1) * a->by_pixel + (a->places - 1) * a->by_place + a->low) / a->gap + 1;
  return pixel == 0 || last < 0 ? 0 : last < a->image ? last : a->image;
}

int64_t patches_reached(const struct patches *p, int64_t line) {
  const struct patch_axis *a = p->axis;
  int64_t plane = line / a[1].pixels, image = plane / a[0].pixels, depth = plane % a[0].pixels;
  int64_t lines =
      (image * a[0].image + met_before(&a[0], depth)) * a[1].image + met_before(&a[1], line % a[1].pixels);
  int64_t all = p->batch * a[0].image * a[1].image;
  return (lines < all ? lines : all) * a[2].image * p->groups * p->terms * p->size;
}

/* What lies `at` behind where the first place of the first pixel is; -1: nothing. */
static int64_t met(const struct patch_axis *a, int64_t at) {
  at += a->low;
  if (at < 0 || (a->gap != 1 && at % a->gap)) return -1;
  if (a->gap != 1) at /= a->gap;
  return at < a->image ? at : -1;
}

uint64_t patches_met(const struct patches *p, int64_t line) {
  enum { BITS = 64 };
  const struct patch_axis *a = p->axis;
  int64_t lines = a[0].places * a[1].places, p1 = line % a[1].pixels, p0 = line / a[1].pixels % a[0].pixels;
  uint64_t bits = 0;
  if (lines > BITS) return ALL_LINES;
  for (int64_t k = 0; k < lines; k++) {
    int64_t k1 = k % a[1].places, k0 = k / a[1].places;
    bool meets = met(&a[0], p0 * a[0].by_pixel + k0 * a[0].by_place) >= 0 &&
                 met(&a[1], p1 * a[1].by_pixel + k1 * a[1].by_place) >= 0;
    bits |= (uint64_t)meets << k;
  }
  return bits == ALL_LINES >> (BITS - lines) ? ALL_LINES : bits;
}

/* How `pixels` pixels of an axis lie in a copy, in slots: as in the image, or where most of that is met by none, those
 * of a place beside each other. */
struct slots {
  int64_t count, by_pixel, by_place;
  bool by_places;
};

static int64_t reach(const struct patch_axis *a, int64_t pixels) {
  return (pixels - 1) * a->by_pixel + (a->places - 1) * a->by_place + 1;
}

static struct slots slots_of(const struct patch_axis *a, int64_t pixels) {
  if (pixels * a->places < reach(a, pixels)) return (struct slots){pixels * a->places, 1, pixels, true};
  return (struct slots){reach(a, pixels), a->by_pixel, a->by_place, false};
}

/* What a slot holds of pixels from `first` on; -1: nothing. */
static int64_t held(const struct patch_axis *a, const struct slots *s, int64_t first, int64_t slot) {
  int64_t at = first * a->by_pixel;
  if (!s->by_places) return met(a, at + slot);
  return met(a, at + slot % s->by_place * a->by_pixel + slot / s->by_place * a->by_place);
}

/* Slots of which the first `pixels` pixels read some. */
static int64_t read_by(const struct patch_axis *a, const struct slots *s, int64_t pixels) {
  return s->by_places ? s->count : reach(a, pixels);
}

struct patch_block patches_block(const struct patches *p, int64_t lines, int64_t pixels) {
  const struct patch_axis *a = p->axis;
  struct patch_block b = {.lines = lines, .pixels = pixels};
  int64_t term = p->terms * p->size;
  if (!patches_have_gaps(p)) {
    int64_t pixel = term * p->groups, line = pixel * a[2].image;
    b.pixel = a[2].by_pixel * pixel, b.line = a[1].by_pixel * line;
    b.place[0] = a[0].by_place * line * a[1].image, b.place[1] = a[1].by_place * line;
    b.place[2] = a[2].by_place * pixel;
    return b;
  }
  struct slots down = slots_of(&a[1], lines), along = slots_of(&a[2], pixels);
  int64_t line = along.count * term;
  b.slots = along.count;
  b.pixel = along.by_pixel * term, b.line = down.by_pixel * line;
  b.place[0] = down.count * line, b.place[1] = down.by_place * line, b.place[2] = along.by_place * term;
  b.bytes = (size_t)(a[0].places * b.place[0]);
  return b;
}

int64_t patches_run(const struct patches *p, const struct patch_block *b) {
  return b->place[2] == p->terms * p->size ? p->axis[2].places : 1;
}

/* Slots of the image as it is: what is outside of it lies before and behind. */
static void copy_plain(const struct patches *p, int64_t first, int64_t count, const char *line, char *to) {
  int64_t bytes = p->terms * p->size, image = p->axis[2].image, step = p->groups * bytes;
  int64_t begin = first < 0 ? -first : 0, end = image - first;
  if (begin > count) begin = count;
  if (end > count) end = count;
  if (end < begin) end = begin;
  memset(to, 0, (size_t)(begin * bytes));
  if (p->groups == 1 && begin < end)
    memcpy(to + begin * bytes, line + (first + begin) * bytes, (size_t)((end - begin) * bytes));
  else
    for (int64_t i = begin; i < end; i++) memcpy(to + i * bytes, line + (first + i) * step, (size_t)bytes);
  memset(to + end * bytes, 0, (size_t)((count - end) * bytes));
}

/* A line of a copy; `line`: what is met of the last axis, of this group. */
static void copy_line(const struct patches *p, const struct patch_block *b, const struct patch_area *area,
                      const char *line, char *to) {
  const struct patch_axis *a = &p->axis[2];
  struct slots s = slots_of(a, b->pixels);
  int64_t bytes = p->terms * p->size, end = read_by(a, &s, area->pixels);
  if (a->gap == 1 && !s.by_places) {
    copy_plain(p, area->pixel * a->by_pixel + a->low, end, line, to);
    return;
  }
  for (int64_t i = 0, many; i < end; i += many, to += many * bytes) {
    int64_t at = held(a, &s, area->pixel, i), next = at, then = at;
    for (many = 1; i + many < end; many++) {
      then = held(a, &s, area->pixel, i + many);
      if (at < 0 ? then >= 0 : p->groups > 1 || then != ++next) break;
    }
    if (at < 0)
      memset(to, 0, (size_t)(many * bytes));
    else
      memcpy(to, line + at * p->groups * bytes, (size_t)(many * bytes));
  }
}

static void copy_block(const struct patches *p, const struct patch_block *b, const struct patch_area *area,
                       const char *image, char *to) {
  const struct patch_axis *a = p->axis;
  int64_t term = p->terms * p->size, line = a[2].image * p->groups * term;
  int64_t p1 = area->line % a[1].pixels, p0 = area->line / a[1].pixels % a[0].pixels;
  struct slots down = slots_of(&a[1], b->lines);
  int64_t end = read_by(&a[1], &down, area->count);
  for (int64_t k = 0; k < a[0].places; k++) {
    int64_t plane = met(&a[0], p0 * a[0].by_pixel + k * a[0].by_place);
    char *at = to + k * b->place[0];
    for (int64_t i = 0; i < end; i++, at += b->slots * term) {
      int64_t row = held(&a[1], &down, p1, i);
      if (plane < 0 || row < 0)
        memset(at, 0, (size_t)(b->slots * term));
      else
        copy_line(p, b, area, image + (plane * a[1].image + row) * line, at);
    }
  }
}

const char *patches_lay(const struct patches *p, const struct patch_block *b, const struct patch_area *area,
                        const char *image, char *to) {
  const struct patch_axis *a = p->axis;
  int64_t pixel = p->groups * p->terms * p->size, line = a[2].image * pixel, plane = a[1].image * line;
  int64_t p1 = area->line % a[1].pixels, p0 = area->line / a[1].pixels % a[0].pixels;
  int64_t n = area->line / a[1].pixels / a[0].pixels;
  image += n * a[0].image * plane + area->group * p->terms * p->size;
  if (b->bytes == 0)
    return image + (p0 * a[0].by_pixel + a[0].low) * plane + (p1 * a[1].by_pixel + a[1].low) * line +
           (area->pixel * a[2].by_pixel + a[2].low) * pixel;
  copy_block(p, b, area, image, to);
  return to;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Patches: along the last axis the places of a pixel that lie side by side in the image, too, are one run, copied by
 * whole vectors: what is written behind a run is written again by the next one, or lies behind the row. */
#include "kernels/cpu/patches.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
enum { VECTOR = 64 };

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

/* What a place of a pixel meets on an axis; -1: nothing. */
INLINE int64_t met(const struct patch_axis *a, int64_t pixel, int64_t place) {
  int64_t at = pixel * a->by_pixel + place * a->by_place + a->low;
  if (a->gap != 1) {
    if (at < 0 || at % a->gap) return -1;
    at /= a->gap;
  }
  return at < a->image ? at : -1;
}

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

INLINE void copy(char *to, const char *from, int64_t bytes, const char *end) {
  if (end - from < (bytes + VECTOR - 1) / VECTOR * VECTOR) {
    memcpy(to, from, (size_t)bytes);
    return;
  }
  for (int64_t at = 0; at < bytes; at += VECTOR) memcpy(to + at, from + at, VECTOR);
}

/* A line of places, those of the last axis, of pixels one behind the other: bytes [begin, end) of it go to `to`. */
struct patch_line {
  const struct patches *p;
  const char *image, *end; /* what is met of the last axis, NULL: nothing; the end of all */
  int64_t first_byte, end_byte;
  int64_t group, step; /* step: bytes from a pixel's to the next one's */
  char *to;
};

/* Place after place. */
INLINE void line_by_places(const struct patch_line *l, int64_t pixel, char *to) {
  const struct patches *p = l->p;
  int64_t bytes = p->terms * p->size;
  for (int64_t k = l->first_byte / bytes; k * bytes < l->end_byte; k++) {
    int64_t begin = greatest(l->first_byte - k * bytes, 0), end = least(l->end_byte - k * bytes, bytes);
    int64_t at = l->image ? met(&p->axis[2], pixel, k) : -1;
    if (at < 0)
      memset(to, 0, (size_t)(end - begin));
    else
      copy(to, l->image + (at * p->groups + l->group) * bytes + begin, end - begin, l->end);
    to += end - begin;
  }
}

/* A pixel whose places lie side by side: those inside are one run. */
INLINE void line_at_edge(const struct patch_line *l, int64_t pixel, char *to) {
  const struct patches *p = l->p;
  const struct patch_axis *a = &p->axis[2];
  int64_t bytes = p->terms * p->size, first = pixel * a->by_pixel + a->low;
  int64_t begin = least(greatest(greatest(-first, 0) * bytes, l->first_byte), l->end_byte);
  int64_t end = least(greatest(greatest(a->image - first, 0) * bytes, begin), l->end_byte);
  memset(to, 0, (size_t)(begin - l->first_byte));
  if (end > begin) copy(to + begin - l->first_byte, l->image + (first * bytes + begin), end - begin, l->end);
  memset(to + end - l->first_byte, 0, (size_t)(l->end_byte - end));
}

/* Pixels all of whose places are inside, by `vectors`. */
INLINE void line_inside(const struct patch_line *l, int64_t pixels, int64_t pixel, int64_t vectors,
                        char *to) {
  const struct patch_axis *a = &l->p->axis[2];
  int64_t bytes = l->p->terms * l->p->size, step = a->by_pixel * bytes;
  const char *from = l->image + (pixel * a->by_pixel + a->low) * bytes + l->first_byte;
  for (int64_t i = 0; i < pixels; i++, from += step, to += l->step)
    for (int64_t v = 0; v < vectors; v++) memcpy(to + v * VECTOR, from + v * VECTOR, VECTOR);
}

/* Pixels [pixel, end) of the last axis. */
INLINE void copy_line(const struct patch_line *l, int64_t pixel, int64_t end) {
  const struct patches *p = l->p;
  const struct patch_axis *a = &p->axis[2];
  char *to = l->to;
  if (!l->image || a->gap != 1 || (a->by_place != 1 && a->places > 1) || p->groups != 1) {
    for (; pixel < end; pixel++, to += l->step) {
      if (l->image)
        line_by_places(l, pixel, to);
      else
        memset(to, 0, (size_t)(l->end_byte - l->first_byte));
    }
    return;
  }
  int64_t vectors = (l->end_byte - l->first_byte + VECTOR - 1) / VECTOR, bytes = p->terms * p->size;
  while (pixel < end) {
    int64_t first = pixel * a->by_pixel + a->low, most = (a->image - a->places - first) / a->by_pixel + 1;
    int64_t inside = first < 0 || first + a->places > a->image ? 0 : least(end - pixel, most);
    for (; inside > 0; inside--) { /* the last vectors end with the image */
      const char *last = l->image + (first + (inside - 1) * a->by_pixel) * bytes + l->first_byte;
      if (l->end - last >= vectors * VECTOR) break;
    }
    if (inside == 0) {
      line_at_edge(l, pixel++, to);
      to += l->step;
      continue;
    }
    switch (vectors) {
    case 1: line_inside(l, inside, pixel, 1, to); break;
    case 2: line_inside(l, inside, pixel, 2, to); break;
    case 3: line_inside(l, inside, pixel, 3, to); break;
    default: line_inside(l, inside, pixel, vectors, to); break;
    }
    pixel += inside, to += inside * l->step;
  }
}

/* The rows of pixels that differ in the last axis alone. */
INLINE void pack_run(const struct patches *p, const struct patch_area *area, const char *image, int64_t row,
                     int64_t pixels, char *to) {
  const struct patch_axis *axis = p->axis;
  int64_t p2 = row % axis[2].pixels, p1 = row / axis[2].pixels % axis[1].pixels;
  int64_t p0 = row / axis[2].pixels / axis[1].pixels % axis[0].pixels;
  int64_t n = row / axis[2].pixels / axis[1].pixels / axis[0].pixels;
  int64_t numbers = axis[2].places * p->terms, pixel_bytes = p->groups * p->terms * p->size;
  int64_t plane = axis[1].image * axis[2].image, all = axis[0].image * plane;
  struct patch_line l = {.p = p,
                         .end = image + p->batch * all * pixel_bytes,
                         .group = area->group,
                         .step = area->step * p->size};
  for (int64_t at = area->column, end; at < area->column + area->columns; at = end) {
    int64_t number = at / numbers;
    end = least((number + 1) * numbers, area->column + area->columns);
    int64_t a0 = met(&axis[0], p0, number / axis[1].places), a1 = met(&axis[1], p1, number % axis[1].places);
    l.image = a0 < 0 || a1 < 0 ? NULL : image + (n * all + a0 * plane + a1 * axis[2].image) * pixel_bytes;
    l.first_byte = (at - number * numbers) * p->size, l.end_byte = (end - number * numbers) * p->size;
    l.to = to + (at - area->column) * p->size;
    copy_line(&l, p2, p2 + pixels);
  }
}

#define DEFINE_PACK(name, attribute)                                                                    \
  attribute static void name(const struct patches *p, const struct patch_area *area, const char *image, \
                             char *to) {                                                                \
    for (int64_t i = 0, pixels; i < area->rows; i += pixels) {                                          \
      int64_t row = area->row + i, left = p->axis[2].pixels - row % p->axis[2].pixels;                  \
      pixels = least(left, area->rows - i);                                                             \
      pack_run(p, area, image, row, pixels, to + i * area->step * p->size);                             \
    }                                                                                                   \
  }

DEFINE_PACK(pack_any, )
#if defined(__x86_64__)
DEFINE_PACK(pack_avx2, __attribute__((target("avx2"))))
DEFINE_PACK(pack_avx512, __attribute__((target("avx512f,avx512vl"))))
#endif

void patches_pack(const struct patches *p, const struct patch_area *area, const void *image, void *to) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl")) {
    pack_avx512(p, area, image, to);
    return;
  }
  if (__builtin_cpu_supports("avx2")) {
    pack_avx2(p, area, image, to);
    return;
  }
#endif
  pack_any(p, area, image, to);
}

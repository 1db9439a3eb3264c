/* SPDX-License-Identifier: Apache-2.0 */
/* The patches of a convolution, which are rows of a matrix: what the places of its kernel meet, of each pixel of its
 * result, or of its output where the result is the kernel. What a place meets nothing under is 0. The matrix is nowhere
 * as such: patches of neighbours share what both of them meet. */
#ifndef DGC_KERNELS_CPU_PATCHES_H
#define DGC_KERNELS_CPU_PATCHES_H

#include "kernels/cpu/conv.h"

/* On each axis place k of pixel p meets what lies at (p * by_pixel + k * by_place + low) / gap of the image that is
 * read, where that is whole and inside: `image` long. */
struct patch_axis {
  int64_t pixels, places, image, by_pixel, by_place, low, gap;
};

/* How far it reaches into a plane that has a border of zeros: a plain one meets its numbers one by one. */
static inline int64_t patch_axis_reach(const struct patch_axis *a) {
  return a->pixels + (a->places - 1) * a->by_place;
}
static inline bool patch_axis_is_plain(const struct patch_axis *a) {
  return a->by_pixel == 1 && a->gap == 1 && a->pixels > 0;
}

struct patches {
  struct patch_axis axis[3];
  int64_t batch, terms,
      groups;   /* terms: numbers that a place meets in its group; `groups` of them lie side by side */
  int64_t size; /* bytes of a number: 4 or 8 */
};

/* Numbers are those of conv. The places of an input's patches are those of the kernel from the last to the first. */
struct patches patches_of(const struct conv_numbers *s, int64_t size);
/* Pixels of the batch, and numbers of a patch. */
int64_t patches_rows(const struct patches *p);
int64_t patches_columns(const struct patches *p);
/* Whether some place of some pixel meets nothing. */
bool patches_have_gaps(const struct patches *p);
/* The lines of the kernel, which are places of the last axis, where a line of pixels meets something: a bit for each of
 * them. All bits where none is left out, or where they are more than the bits. */
#define ALL_LINES UINT64_MAX
uint64_t patches_met(const struct patches *p, int64_t line);
/* Whether the rows lie in the image as they are, one behind the other. */
bool patches_are_image(const struct patches *p);

/* How many bytes of the images the lines before `line` meet, about: for what is asked for ahead. */
int64_t patches_reached(const struct patches *p, int64_t line);

/* Lines of pixels, which are those of the last axis: the middle axis is how they lie one below the other. */
int64_t patches_lines(const struct patches *p);

/* How the image lies where patches of some pixels are read, as bytes from one to the next: pixels of a line, lines,
 * places on each axis. Either the image is read as it is, or blocks of it are copied, with 0 where a place meets
 * nothing: `lines` lines at most, which differ in the middle axis alone, and of each as many successive `pixels`. */
struct patch_block {
  int64_t lines, pixels;
  int64_t pixel, line, place[3];
  int64_t slots; /* pixels of a line; of a copy */
  size_t bytes;  /* of a copy; 0: the image as it is */
};
struct patch_block patches_block(const struct patches *p, int64_t lines, int64_t pixels);
/* The places of the last axis whose numbers lie one behind the other. */
int64_t patches_run(const struct patches *p, const struct patch_block *b);

/* Of a group `count` lines from `line` on, and of each `pixels` pixels from `pixel` on. */
struct patch_area {
  int64_t group, line, count, pixel, pixels;
};
/* What the first place of the first pixel meets. `to` is where it is copied, if it is. */
const char *patches_lay(const struct patches *p, const struct patch_block *b, const struct patch_area *area,
                        const char *image, char *to);

#endif

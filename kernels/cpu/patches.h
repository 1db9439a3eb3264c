/* SPDX-License-Identifier: Apache-2.0 */
/* The patches of a convolution as rows of a matrix: what the places of its kernel meet, of each pixel of its result,
 * or of its output where the result is the kernel. What a place meets nothing under is 0. */
#ifndef DGC_KERNELS_CPU_PATCHES_H
#define DGC_KERNELS_CPU_PATCHES_H

#include "kernels/cpu/conv.h"

/* On each axis place k of pixel p meets what lies at (p * by_pixel + k * by_place + low) / gap of the image that is
 * read, where that is whole and inside: `image` long. */
struct patch_axis {
  int64_t pixels, places, image, by_pixel, by_place, low, gap;
};

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
/* Whether the rows lie in the image as they are, one behind the other. */
bool patches_are_image(const struct patches *p);

/* Numbers that may be written behind a row. */
enum { PATCH_SLACK = 16 };
/* Of `rows` pixels from `row` on, `columns` numbers from `column` on; `step` numbers from one row to the next in `to`,
 * at least `columns` + PATCH_SLACK. `image`: all of it. */
struct patch_area {
  int64_t group, row, rows, column, columns, step;
};
void patches_pack(const struct patches *p, const struct patch_area *area, const void *image, void *to);

#endif

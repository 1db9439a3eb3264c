/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bfloat16 values by AMX, added up in f32: the output, and the gradient by the input. */
#ifndef DGC_KERNELS_CPU_CONV_AMX_H
#define DGC_KERNELS_CPU_CONV_AMX_H

#include "kernels/cpu/conv.h"

#include <stddef.h>

/* Pixel p of the result is at first + p * step; place j of the kernel, which is at start + j * by_kernel in memory,
 * meets what lies at p * by_pixel + j * by_place - low of the image that is read, which has `image` of them. */
struct amx_axis {
  int64_t pixels, first, step;
  int64_t places, start, by_kernel;
  int64_t image, by_pixel, by_place, low;
};

/* Pixels of the result that see the same places of the kernel: all of them, or of a gradient under strides one in so
 * many. A line of places is one run of values, or as many runs as places where these are not neighbours. */
struct amx_phase {
  struct amx_axis axis[3];
  int64_t batch;
  bool direct;          /* tiles are loaded from the image as it is, else from a copy with zeros around it */
  int64_t depth;        /* values of a pixel there: an even number */
  int64_t line, plane;  /* values from a line of that to the next one, and from a plane */
  int64_t runs, values; /* of a line of places, and values of a run */
  int64_t rows, per_line; /* pixels of a tile; tiles of a line of pixels, of which the last two may overlap */
  int64_t tiles;          /* of a unit at most; those of a copy are whole lines */
  int64_t units;          /* of each plane of each image */
  int64_t packed, panel;  /* where its kernel is in what is packed, and how much 16 filters have there */
};

enum { AMX_PHASES = 16 };
struct amx_conv {
  int64_t places[3];      /* of the kernel, as it lies */
  int64_t terms, filters; /* what is summed over, and what a pixel of the result has */
  int64_t term, filter;   /* from one to the next in the kernel */
  int64_t size[3];        /* pixels of the result */
  bool stored;            /* the image is bfloat16 in memory, too, else f32 */
  bool gaps;              /* zeros around the image are multiplied */
  int nphases;
  struct amx_phase phases[AMX_PHASES];
  int64_t units; /* of all: any of them can be computed alone, and has the same bits */
  int64_t
      packed; /* numbers of memory for the kernel, which begins at a multiple of 64 bytes, as the room does */
  size_t room; /* bytes to work in, of each thread */
};

/* Plans it; false: it is none of these, or its sizes are not fit. */
bool amx_conv_plan(const struct conv_numbers *s, bool stored, struct amx_conv *plan);
/* Panels of 16 filters, of all phases: there are so many, and any of them can be packed alone. */
int64_t amx_conv_panels(const struct amx_conv *c);
void amx_conv_pack(const struct amx_conv *c, const uint16_t *kernel, uint16_t *packed, int64_t first,
                   int64_t end);
/* Units [first, end) of the result; only where amx_can. A sum goes over the planes and lines of the kernel, of a
 * gradient from the last place to the first one, and along a line over its places and in each over the terms. Of each
 * 32 successive values of a run, the last of which may be fewer, the even ones are one chain of fused multiply-adds
 * from +0, the odd ones another; the sum of both is added to what there is so far. A place whose terms are an odd
 * number has one more, which is 0. Subnormal numbers count as 0. Any thread. */
void amx_conv_run(const struct amx_conv *c, const void *image, const uint16_t *packed, float *out,
                  int64_t first, int64_t end, void *room);

#endif

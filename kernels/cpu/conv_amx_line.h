/* SPDX-License-Identifier: Apache-2.0 */
/* The line of places of conv_amx_sums.c: what conv_amx_plan.c makes of sizes, for what runs. */
#ifndef DGC_KERNELS_CPU_CONV_AMX_LINE_H
#define DGC_KERNELS_CPU_CONV_AMX_LINE_H

#include "kernels/cpu/amx_tiles.h"
#include "kernels/cpu/conv.h"

enum { AXES = 3, SUMS = LANES * LANES };

/* What lies along the line: at a place that is `at` on each axis lies pixel at * stride + begin of the image, where
 * low <= at < high; 0 elsewhere. */
struct lain {
  int64_t begin[AXES], low[AXES], high[AXES];
};

/* Of x, and which places of the kernel read it: those of the list `readers` from `first` on. */
struct copy {
  struct lain lain;
  int64_t first, count;
  int64_t halo; /* places that are read behind those at hand, a multiple of DEPTH */
  bool odd;     /* whether one of them reads an odd number of places behind; those come last */
};

struct copy_reader {
  int64_t place, behind; /* of the kernel; how many places behind the output's */
};

struct conv_amx_sums {
  struct conv_numbers size;
  bool stored, gaps, keeps;
  int64_t rows[AXES], pitch; /* places of each axis, and of an image */
  struct copy *copies;
  struct copy_reader *readers;
  int64_t *sums_of;   /* by place of the kernel: the first of its tiles, */
  int64_t *sums_step; /* and how many are from 16 channels to the next ones */
  int64_t ncopies, nreaders;
  int64_t at_once, side;     /* places; numbers of what is packed of a copy, of even or of odd pairs */
  int64_t piece;             /* places whose sums are one chain */
  int64_t channels, filters; /* tiles */
};

static inline int64_t count_of(const int64_t *size) { return size[0] * size[1] * size[2]; }

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of floats whose groups have one channel and one filter each, in the order of ir/ops/conv.c: lanes run
 * along the groups. */
#ifndef DGC_KERNELS_CPU_CONV_LANES_H
#define DGC_KERNELS_CPU_CONV_LANES_H

#include "kernels/cpu/patches.h"

/* What a chain holds at most, PRODUCT_PIECE of ir/ops/leaf.h. */
enum { LANES_PIECE = 512 };

/* Whether these functions do it. */
bool conv_has_lanes(const struct conv_numbers *s);

/* Pixels [first, end) of the result; a: what is read of patches, b: the kernel. `turned`: the result is the input. The
 * caller's processor has fma if it is x86. */
struct lanes_call {
  const struct patches *patches;
  bool turned;
  const void *a, *b;
  void *out;
  int64_t first, end;
  void *memory;
};
void conv_lanes_pixels(const struct lanes_call *c);
/* The kernel: sums over pixels [first, end), where a is what is read of patches and b lies beside the pixels; `first`
 * is a multiple of LANES_PIECE. `memory`: as many bytes as conv_lanes_memory says for so many pixels. */
void conv_lanes_kernel(const struct lanes_call *c);
size_t conv_lanes_memory(const struct patches *p, int64_t pixels);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of kernels of bfloat16 convolutions by AMX: sums over pixels, added up in f32. On x86-64 Linux alone. */
#ifndef DGC_KERNELS_CPU_CONV_AMX_SUMS_H
#define DGC_KERNELS_CPU_CONV_AMX_SUMS_H

#include "kernels/cpu/conv.h"

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* How a gradient is computed, of sizes with one group and no dilated input, none of them 0; in `a`. NULL: this
 * is not the way for these. `stored`: both operands are bfloat16 in memory, else the upper halves of f32.
 * Results follow from the sizes alone. */
struct conv_amx_sums;
const struct conv_amx_sums *conv_amx_sums_create(struct arena *a, const struct conv_numbers *size,
                                                 bool stored);
/* Whether a 0 is multiplied where there is no term: elements that Inf or NaN are beside it are NaN. */
bool conv_amx_sums_have_gaps(const struct conv_amx_sums *s);
/* Floats of the sums, which lie as tiles, how many of them a piece of so many images has one behind the other,
 * and bytes to work in. */
int64_t conv_amx_sums_count(const struct conv_amx_sums *s);
int64_t conv_amx_sums_levels(const struct conv_amx_sums *s, int64_t images);
size_t conv_amx_sums_room(const struct conv_amx_sums *s);
/* The sums over images [first, end) to `sums`. Both memories begin at a multiple of 64. Only where amx_can;
 * any thread. */
void conv_amx_sums_run(const struct conv_amx_sums *s, const void *x, const void *dy, int64_t first,
                       int64_t end, float *sums, void *room);
/* The kernel is a matrix [places * channels, filters], of so many units; the first row of one. */
int64_t conv_amx_sums_units(const struct conv_amx_sums *s);
int64_t conv_amx_sums_row(const struct conv_amx_sums *s, int64_t unit);
/* Units [first, end) of it, from the sums of so many pieces, which lie so many floats apart, a multiple of 16,
 * and are added up in their order. */
void conv_amx_sums_put(const struct conv_amx_sums *s, const float *sums, int64_t pieces, int64_t apart,
                       float *kernel, int64_t first, int64_t end);

#endif

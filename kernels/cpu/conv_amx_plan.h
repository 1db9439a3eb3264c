/* SPDX-License-Identifier: Apache-2.0 */
/* How the gradient of a bfloat16 convolution's kernel is computed by AMX. On x86-64 Linux alone. */
#ifndef DGC_KERNELS_CPU_CONV_AMX_PLAN_H
#define DGC_KERNELS_CPU_CONV_AMX_PLAN_H

#include "kernels/cpu/conv.h"

#include <stdbool.h>

struct arena;

/* How a gradient is computed, of sizes with one group and no dilated input, none of them 0; in `a`. NULL: this
 * is not the way for these. `stored`: both operands are bfloat16 in memory, else the upper halves of f32.
 * Results follow from the sizes alone. */
struct conv_amx_sums;
const struct conv_amx_sums *conv_amx_sums_create(struct arena *a, const struct conv_numbers *size,
                                                 bool stored);
/* Whether a 0 is multiplied where there is no term: elements that Inf or NaN are beside it are NaN. */
bool conv_amx_sums_have_gaps(const struct conv_amx_sums *s);
/* Floats of the sums, which lie as tiles, and how many of them a piece of so many images has one behind the other. */
int64_t conv_amx_sums_count(const struct conv_amx_sums *s);
int64_t conv_amx_sums_levels(const struct conv_amx_sums *s, int64_t images);
/* The kernel is a matrix [places * channels, filters], of so many units; the first row of one. */
int64_t conv_amx_sums_units(const struct conv_amx_sums *s);
int64_t conv_amx_sums_row(const struct conv_amx_sums *s, int64_t unit);

#endif

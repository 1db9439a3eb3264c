/* SPDX-License-Identifier: Apache-2.0 */
/* Spatial axes, those between the batch and the channels: what conv and the windows have in common. */
#ifndef DGC_IR_OPS_SPATIAL_H
#define DGC_IR_OPS_SPATIAL_H

#include "ir/ops/op.h"

/* Stands for more, which is longer than any axis. */
#define SPATIAL_MOST (INT64_C(1) << 60)

/* The numbers of an attribute, one for each of `rank` axes; `otherwise` where n has none. False: *why says why not. */
bool spatial_numbers(const struct node *n, enum attr_key key, int rank, int64_t least, int64_t otherwise,
                     int64_t *out, struct arena *arena, const char **why);
/* From the first of `size` elements to the last, with gaps. */
int64_t spatial_reach(int64_t size, int64_t dilation);
/* How many places a window has over so many dilated elements, of which there are `padding` more; none where it is
 * longer. */
int64_t spatial_places(int64_t input, int64_t input_dilation, int64_t padding, int64_t window,
                       int64_t window_dilation, int64_t stride);
/* first times all factors, at most SPATIAL_MOST. */
int64_t spatial_product(int64_t first, size_t count, const int64_t *factors);
/* " strides 2,2" of an attribute that n has. */
void spatial_print(struct str *s, const struct node *n, enum attr_key key, const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of values that are zero but for parts. */
#ifndef DGC_IR_OPS_PARTS_H
#define DGC_IR_OPS_PARTS_H

#include "ir/graph/graph.h"

/* a + b as a concat, or as one with what else is in a sum, if both are zero but for parts that do not overlap: pads by
 * zeros along one axis, and concats with zeros. Else NULL. */
struct node *parts_add(struct graph *g, struct node *a, struct node *b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The order of towers that share a device. */
#ifndef DGC_IR_GRAPH_TOWER_ORDER_H
#define DGC_IR_GRAPH_TOWER_ORDER_H

#include "ir/graph/graph.h"

/* Whether the towers of a device run one behind the other, in a placed or fused graph: then one tower keeps values for
 * its backward pass at a time, but the gradients of all variables are kept until the last tower has added its own. In
 * turn, operation by operation, all towers keep values, and each gradient is used up at once. It is so where several
 * share a device and their values are larger than those gradients, by what products, convolutions and other leaves
 * make. */
bool graph_tower_by_tower(const struct graph *g);

#endif

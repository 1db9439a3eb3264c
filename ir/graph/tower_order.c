/* SPDX-License-Identifier: Apache-2.0 */
/* See tower_order.h. A sum over n towers is a tree: of the first ones, one sum of each power of two in n is kept. */
#include "ir/graph/tower_order.h"

#include "ir/ops/op.h"

/* Sums of a tree that are kept at most, with the share that comes in. */
static int kept_of(int towers) {
  int kept = 1;
  for (int n = towers - 1; n > 0; n /= 2) kept++;
  return kept;
}

bool graph_tower_by_tower(const struct graph *g) {
  int towers = 0, devices = g->config.target.ndevices > 0 ? g->config.target.ndevices : 1;
  double values = 0, gradients = 0;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->tower >= towers) towers = n->tower + 1;
    if (n->tower < 0 || op_of(n)->kind != KIND_LEAF) continue;
    *(n->dist == DIST_PARTIAL ? &gradients : &values) += (double)type_bytes(&n->type);
  }
  int together = (towers + devices - 1) / devices;
  return together > 1 && values > gradients / together * kept_of(together);
}

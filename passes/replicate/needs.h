/* SPDX-License-Identifier: Apache-2.0 */
/* Which device or tower needs which value. */
#ifndef DGC_PASSES_REPLICATE_NEEDS_H
#define DGC_PASSES_REPLICATE_NEEDS_H

#include "passes/replicate/state.h"

void mark_needs(struct replicate *r, struct tower_group *g);
/* The value of an assignment that depends on nothing is computed once, and the copies start from that. */
bool starts_from_primary(const struct replicate *r, const struct node *assign);
bool needed_on(const struct replicate *r, const struct tower_group *g, const struct node *n, int device);
/* In the part of one task: by process, whether one of its devices reads n. */
uint8_t *readers_of(const struct replicate *r, const struct tower_group *g, const struct node *n);
/* The device of what exists once though several may need it: the copy that keeps the name. -1: nobody needs it. */
int primary_device(const struct replicate *r, const struct tower_group *g, const struct node *n);

#endif

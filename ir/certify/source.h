/* SPDX-License-Identifier: Apache-2.0 */
/* The source as the certificate reads it. */
#ifndef DGC_IR_CERTIFY_SOURCE_H
#define DGC_IR_CERTIFY_SOURCE_H

#include "ir/certify/context.h"

/* local.c: local values, those of a tower that sees its own rows alone. Begins once the views are known. */
void certify_local_begin(struct certify *c, const uint8_t *live);
/* The towers' local values of n, if they are wanted. False if there is none. */
bool certify_local(struct certify *c, const struct node *n, struct node **in);
/* What the tower has for itself: n is a `local`. */
struct node *certify_own(struct certify *c, const struct node *n, int tower);
/* Whether n joins local values: aggregates, variables that are joined on read, and their updates. */
bool certify_is_aggregated(const struct certify *c, const struct node *n);
/* What such a node is to everybody else; NULL if there is nothing to join. */
struct node *certify_aggregated(struct certify *c, const struct node *n);
/* Notes which local values are shares of what joins them. */
void certify_local_shares(struct certify *c);

/* source.c: fills the reference. False after a breach. */
bool certify_source(struct certify *c);

#endif

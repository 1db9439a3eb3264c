/* SPDX-License-Identifier: Apache-2.0 */
/* What the certificate says of its claims. */
#ifndef DGC_IR_CERTIFY_BREACH_H
#define DGC_IR_CERTIFY_BREACH_H

#include "ir/certify/context.h"

/* What a claim's line says where nothing is wrong. */
void certify_say(struct certify *c, enum claim_id claim, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A breach at node n of the placed graph, or at none; where the source is known, at the first node before n that leaves
 * it. Each node is blamed once. */
void certify_breach(struct certify *c, enum claim_id claim, const struct node *n, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Reports why `n` is not `want`, which `what` ("the loss x") should be. */
void certify_blame(struct certify *c, enum claim_id claim, const struct node *n, const struct node *want,
                   const char *what);

#endif

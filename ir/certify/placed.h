/* SPDX-License-Identifier: Apache-2.0 */
/* The placed graph as the certificate reads it. */
#ifndef DGC_IR_CERTIFY_PLACED_H
#define DGC_IR_CERTIFY_PLACED_H

#include "ir/certify/context.h"

/* parts.c */
/* Checks the parts of variables, and notes what they stand for. False after a breach. */
bool certify_parts(struct certify *c);

/* placed.c: what each node of the placed graph stands for. */
void certify_placed(struct certify *c);

/* variables.c: all copies of all variables, and who writes them. */
void certify_variables(struct certify *c);

#endif

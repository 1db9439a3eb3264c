/* The placed graph as the certificate reads it. */
#ifndef DGC_IR_CERTIFY_PLACED_H
#define DGC_IR_CERTIFY_PLACED_H

#include "ir/certify/context.h"

/* parts.c */
/* Notes the parts of variables. False after a breach. */
bool certify_parts(struct certify *c);
/* The rows of its variable that a placed variable holds, from *first on; -1 if it is no part and has all. */
int64_t certify_part_rows(const struct certify *c, const struct node *v, int64_t *first);

/* placed.c: what each node of the placed graph stands for. */
void certify_placed(struct certify *c);

/* variables.c: all copies of all variables, and who writes them. */
void certify_variables(struct certify *c);

#endif

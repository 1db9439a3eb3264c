/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of the reference graph, in which equal expressions are one node. All return NULL if there is no such node. */
#ifndef DGC_IR_CERTIFY_REFERENCE_H
#define DGC_IR_CERTIFY_REFERENCE_H

#include "ir/certify/context.h"

/* reference.c */
/* `like` with these operands and attributes, after the builder's rules. `type` for typed ops. */
struct node *certify_make(struct certify *c, const struct node *like, struct node *const *in, int nattrs,
                          const struct attr *attrs, const struct type *type, int tower);
/* Rows of x, which is the same everywhere. */
struct node *certify_rows_of(struct certify *c, const struct node *like, struct node *x, int64_t begin,
                             int64_t rows);

/* instance.c */
/* n's attributes, without an offset of 0, which is none; how many. */
int certify_attrs(const struct node *n, struct attr *out);
/* The name of a tower's value of n. */
const char *certify_tower_name(struct certify *c, const struct node *n, int tower);
/* n of the source for a tower's rows, or for the whole batch; `counted` is what batch_size is. */
struct node *certify_instance(struct certify *c, const struct node *n, struct node *const *in, int tower,
                              int64_t counted);
/* A tower's rows of an input of the source. */
struct node *certify_input_rows(struct certify *c, const struct node *n, struct node *global, int tower);
/* The input that these values are all rows of, in order; NULL if there is none. */
struct node *certify_joined_input(struct node *const *rows, int count);
/* tower_id and tower_count as numbers, and any other number of this type. */
struct node *certify_tower_number(struct certify *c, const struct node *n, int tower);
struct node *certify_number(struct certify *c, const struct type *t, int64_t value, int tower);
/* A value that is the same everywhere as a tower's. */
struct node *certify_lift(struct certify *c, struct node *x, int tower);
/* Notes that x is a tower's share of a reduction. */
void certify_note_share(struct certify *c, struct node *x, struct node *total, struct node *in_worker,
                        enum dist how);

#endif

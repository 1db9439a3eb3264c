/* SPDX-License-Identifier: Apache-2.0 */
/* What planters of faults in graphs share. A planter goes over the places where its fault can be planted, and plants it
 * at the one at hand. */
#ifndef TESTS_TOWERS_PLANT_H
#define TESTS_TOWERS_PLANT_H

#include "mutations.h"

#include "ir/ops/op_id.h"

#define MUTATION(name) bool name(struct patient *p);
#include "mutations.def"

#define EACH(p, n)                                         \
  for (uint32_t i_##n = 0; i_##n < (p)->g->count; i_##n++) \
    for (struct node *n = (p)->g->nodes[i_##n]; n; n = NULL)

/* The fault is n's, or shows in the first that read it. */
bool planted(struct patient *p, const struct node *n);
const struct node *through(const struct node *n);
bool is_share(const struct node *n);
/* An addition of two towers' shares, or more. */
bool is_join(const struct node *n);
/* A tower's own share, not yet joined. */
bool is_leaf(const struct node *n);
bool is_update(const struct patient *p, int output);
void replace(struct patient *p, const struct node *old, struct node *by);
/* A node more, before number `at`. */
struct node *insert(struct patient *p, uint32_t at, struct node n);
/* An elementwise node at the place of `like`. */
struct node *insert_op(struct patient *p, const struct node *like, enum op_id op, struct node *a,
                       struct node *b);
struct attr *attr_of(struct patient *p, struct node *n, enum attr_key key);
void remove_attr(struct patient *p, struct node *n, enum attr_key key);
void remove_output(struct patient *p, int i);
/* Another node of the same type, place and towers that `reader` may read and does not. */
struct node *other_like(struct patient *p, const struct node *reader, const struct node *x);
/* Another variable of the same type on the same device, not both copies of one. */
struct node *other_variable(struct patient *p, const struct node *x);
/* The same node of another tower: tower_2/x for x. */
struct node *twin(struct patient *p, const struct node *x, const struct node *reader);

#endif

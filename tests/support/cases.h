/* SPDX-License-Identifier: Apache-2.0 */
/* Every op as small graphs: odd shapes, broadcast and transposed operands, all axes. A new op of a known kind needs
 * nothing here. */
#ifndef TESTS_SUPPORT_CASES_H
#define TESTS_SUPPORT_CASES_H

#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

struct op_case {
  struct node *node; /* the op */
  int nleaves;
  struct node *const *leaves; /* what it reads, perhaps through a broadcast or a transposition */
};

struct cases {
  struct graph *g;
  enum op_id op;
  bool variables; /* leaves are variables, else inputs */
  bool small;     /* few elements: each is perturbed */
  struct op_case *list;
  int count, cap;
  /* of the case being built */
  struct node **leaves;
  int nleaves;
  int tried; /* cases before it, those that were dropped too: its leaves are named by that */
};

/* Element types that the op takes. */
bool op_takes(enum op_id op, enum dtype d);
/* Whether a test program's arguments name the op; all are named where there are none. */
bool op_is_named(int argc, char **argv, enum op_id op);
/* Adds all cases of c->op on dtype d to c->list and c->g. Ops that are tested by name have none. */
void cases_add(struct cases *c, enum dtype d);

struct rng;
struct values;
/* Numbers for what the case reads, from its op's domain; mod's away from whole quotients, where it jumps. */
void case_fill(struct arena *a, struct rng *r, const struct op_case *c, struct values *variables);

/* --- what makes one --- */

#define CASE_COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
/* Shapes as text, "3,5": a rank of 0 is "". */
struct type case_shape(enum dtype d, const char *text);
/* An operand that is given: of the case that is being made. */
struct node *case_leaf(struct cases *c, const struct type *t);
/* The case is made. One in which the op has folded away is none. */
void case_done(struct cases *c, struct node *n);

#endif

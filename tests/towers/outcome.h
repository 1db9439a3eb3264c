/* SPDX-License-Identifier: Apache-2.0 */
/* What a placed graph does: its results and every copy of every variable, over some steps on some inputs, so that
 * two graphs can be told apart by numbers and not by how they are written.
 *
 * Equal tensors have one number: two graphs do the same if their results have the same numbers. A node is computed once
 * for its op, attributes and operands, however many graphs it stands in, so that a graph which differs from another in
 * one node costs what depends on that node. */
#ifndef TESTS_TOWERS_OUTCOME_H
#define TESTS_TOWERS_OUTCOME_H

#include "tests/support/eval.h"

enum { OUTCOME_INPUTS = 3, OUTCOME_STEPS = 2 };

/* Tensors, and what has been computed from them. */
struct bank {
  struct arena *arena;
  bool wide; /* f64 in place of f32: what the order of additions changes lies far below what a fault does */
  struct bank_slot *values, *nodes;
  uint32_t nvalues, value_slots, nnodes, node_slots;
  struct tensor *tensors; /* by number - 1 */
};

/* "input 2, step 1, loss loss" -> the number of its value. */
struct outcome {
  struct map numbers;
  const char *uncomputed; /* a node that cannot be computed, or NULL */
};

struct bank bank_make(struct arena *a, bool wide);
/* Inputs are drawn by their name, type and number; variables too, the same for "v" and "v/replica_1", and each tower
 * its own of one that is joined on read. The outcome lies in `a`, values in the bank. */
struct outcome outcome_of(struct arena *a, struct bank *b, const struct graph *g);
/* Where they differ, or NULL. A variable that one of them does not have keeps its first value there. With a bank of
 * wide tensors, what differs by less than 1e-9 of its size is equal. `what` is in `a`. */
const char *outcome_difference(struct arena *a, const struct bank *b, const struct outcome *want,
                               const struct outcome *have);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What one step of a source graph must give: the oracle on the graph after differentiation, with bounds. */
#ifndef TESTS_SUPPORT_EXPECT_H
#define TESTS_SUPPORT_EXPECT_H

#include "tests/support/bound.h"

struct expectation {
  struct graph *g; /* differentiated, with concrete shapes */
  struct bounds *bounds;
  bool exact_products; /* no matmul of f32 is inexact: backends agree bit for bit */
  int64_t exact, inside,
      unknown; /* elements of outputs and variables that must be equal, lie inside, may be anything */
};

/* Additions allowed for, over those of a sum's own terms: a tree over 8 towers adds 3 per sum, and a sum of up to
 * 8 sums that are joined before it 8 more; doubled. */
#define TOWER_ADDITIONS 22

/* False after errors in `d`. */
bool expect_step(struct arena *a, struct graph *source, int64_t rows, const struct values *inputs,
                 const struct values *variables, struct diags *d, struct expectation *out);
/* Outputs, and variables after the step: those that were not assigned have kept their value, and all copies are
 * equal. What is wrong, or NULL. */
const char *expect_breach(struct arena *a, const struct expectation *e, const struct values *before,
                          const struct values *outputs, const struct values *after);
/* Bit for bit the same names and tensors; NULL or the first difference. Copies "v/replica_1" are left out. */
const char *values_difference(struct arena *a, const struct values *want, const struct values *got);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of tests: the same in every run. */
#ifndef TESTS_SUPPORT_RANDOM_H
#define TESTS_SUPPORT_RANDOM_H

#include "ir/ops/op.h"

struct rng {
  uint64_t state;
};

uint64_t rng_bits(struct rng *r);
int rng_below(struct rng *r, int n);
bool rng_chance(struct rng *r, int percent);
double rng_uniform(struct rng *r, double lo, double hi);

/* Values of a domain. `operand` tells operands of one op apart where they must differ: DISTINCT values are at
 * least 1/8 from each other, within a tensor and between operands 0 and 1. */
void sample_fill(struct rng *r, enum sample_domain domain, int operand, struct tensor *t);
/* Values of the whole type, special ones among them: zeros, infinities, NaN, subnormals, extreme integers. */
void special_fill(struct rng *r, struct tensor *t);

#endif

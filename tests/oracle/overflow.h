/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums of which parts overflow. dgc adds them up from one end, XLA in blocks: where terms that stand beside
 * each other have a sum that is no number, one order may meet an infinity, and another not. Where other terms overflow
 * in the other direction, the two infinities may meet, and that is NaN. (Two such stretches are never within each other
 * without two that are apart: what the one has more overflows alone.) */
#ifndef TESTS_ORACLE_OVERFLOW_H
#define TESTS_ORACLE_OVERFLOW_H

#include "tests/support/bound.h"

/* The bounds of n, a cumsum of floats over x: points but where parts overflow. There they begin or end at an infinity,
 * and at what all terms are together. */
void overflow_widen(struct arena *a, const struct node *n, const struct tensor *x, struct bounds *b);

#endif

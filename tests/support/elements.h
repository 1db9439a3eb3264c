/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of tensors as bits, as numbers and as text; what differs between two tensors. */
#ifndef TESTS_SUPPORT_ELEMENTS_H
#define TESTS_SUPPORT_ELEMENTS_H

#include "tests/support/eval.h"

uint64_t tensor_bits(const struct tensor *t, int64_t i);
double tensor_at(const struct tensor *t, int64_t i);
/* `value` converted to t's dtype. */
void tensor_set(struct tensor *t, int64_t i, double value);
/* The element in decimal, in `a`. */
const char *tensor_element(struct arena *a, const struct tensor *t, int64_t i);

double bits_number(enum dtype d, uint64_t bits);
uint64_t number_bits(enum dtype d, double value);

/* Bits for bits; any NaN is any NaN. What differs, or NULL. */
const char *tensor_difference(struct arena *a, const struct tensor *want, const struct tensor *got);
/* Likewise, but +0 and -0 are equal. */
const char *tensor_difference_but_zeros(struct arena *a, const struct tensor *want, const struct tensor *got);

#endif

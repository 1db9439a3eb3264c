/* SPDX-License-Identifier: Apache-2.0 */
/* The generator behind m_random_uniform and m_random_normal (ir/scalar/scalar.h), apart for its known answers. */
#ifndef DGC_IR_SCALAR_RANDOM_H
#define DGC_IR_SCALAR_RANDOM_H

#include "ir/scalar/scalar.h"

/* Replaces four i32 counter words by the four words Philox4x32-10 makes of them under a key of two i32 words. */
void random_philox(struct sprog *p, sval counter[4], const sval key[2]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Samples as graphs with values. */
#ifndef TESTS_ORACLE_SAMPLE_H
#define TESTS_ORACLE_SAMPLE_H

#include "tests/oracle/case.h"

/* The case `name`: gradients of the first loss of a source graph for training, by its variables. */
void write_gradients_of(const struct asked *q, const char *name, const struct graph *train,
                        const struct values *inputs, const struct values *variables, int64_t rows);

#endif

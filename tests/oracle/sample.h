/* Samples as graphs with values. */
#ifndef TESTS_ORACLE_SAMPLE_H
#define TESTS_ORACLE_SAMPLE_H

#include "tests/oracle/case.h"

void write_gradients_of(const struct asked *q, const struct graph *train, const struct values *inputs,
                        const struct values *variables, int64_t rows);

#endif

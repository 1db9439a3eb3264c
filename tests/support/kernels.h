/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with arguments to run them on: random ones, and every instruction and function on special values. */
#ifndef TESTS_SUPPORT_KERNELS_H
#define TESTS_SUPPORT_KERNELS_H

#include "ir/scalar/kernel.h"
#include "tests/support/random.h"

/* Equal contents twice: for the code under test and for what it is compared with. Four elements more than
 * used. */
struct sample_buffer {
  unsigned char *data, *expected;
  int64_t elements;
};

struct kernel_sample {
  struct kernel kernel;
  int64_t sizes[MAX_RANK + MAX_KERNEL_ARGS * MAX_RANK + 8 + MAX_RANK];
  struct sample_buffer buffer[MAX_KERNEL_ARGS];
  int64_t origin[MAX_KERNEL_ARGS]; /* elements from the start of the buffer */
  int alias[MAX_KERNEL_ARGS];      /* the argument whose buffer this is */
};

/* A reduction with up to `sums` accumulators; of more than one it may map, too. */
void random_sample(struct rng *r, struct arena *arena, struct kernel_sample *s, enum kernel_kind kind,
                   int sums);
/* `op` on every pair of special values of every type. Returns how many samples there are. */
int special_samples(struct arena *arena, enum sop op, struct kernel_sample **out);
/* Every function of ir/scalar/scalar.h. */
int function_samples(struct arena *arena, struct rng *r, struct kernel_sample **out);

/* The arguments in `data`, or in `expected`. */
void sample_args(const struct kernel_sample *s, bool expected, void *args[MAX_KERNEL_ARGS]);
/* Where `data` differs from `expected`, or NULL; any NaN is any NaN. */
const char *sample_difference(struct arena *a, const struct kernel_sample *s);

#endif

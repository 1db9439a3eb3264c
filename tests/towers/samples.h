/* SPDX-License-Identifier: Apache-2.0 */
/* The samples as graphs, each compiled for layouts of towers and devices. */
#ifndef TESTS_TOWERS_SAMPLES_H
#define TESTS_TOWERS_SAMPLES_H

#include "frontend/frontend.h"
#include "passes/pass.h"

/* One model for one layout. */
struct sample_case {
  const char *name; /* "digits.train, 4 towers, mirrored on cpu:0-1" */
  const struct model *model;
  const struct graph *source;
  struct config config;
  struct graph *graph; /* what the passes made of it */
};

/* What is done with each; what is wrong, or NULL. `a` lives for the case. */
typedef const char *sample_check(struct arena *a, const struct sample_case *c, void *user);

/* Every entry of every sample on every layout with a batch of `rows`, with its copies, or `fused`: all
 * strategies, cross-device algorithms, packs, fewer and more towers than devices. `list`: devices, as "cpu:0-3";
 * NULL-terminated. Fails the cmocka test with all that `check` finds wrong; `shorter` leaves most of them out.
 * TEST_SHARE=N tries every Nth only: up to 11, or 4 if `shorter`, each entry still meets each strategy on each list. */
void each_sample(const char *const *lists, int64_t rows, bool shorter, bool fused, sample_check *check,
                 void *user);

#endif

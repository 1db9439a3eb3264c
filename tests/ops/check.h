/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of numbers that can be made anywhere, and one number of what came of them: as conv.py and window.py do. */
#ifndef TESTS_OPS_CHECK_H
#define TESTS_OPS_CHECK_H

#include "ir/graph/build.h"
#include "tests/support/elements.h"
#include "tests/support/eval.h"

#include <math.h>

/* Each element counts with a weight of its own; NaN and -Inf as a thousand and a hundred. */
static inline int64_t check_sum(const struct tensor *t) {
  double sum = 0;
  for (int64_t i = 0; i < type_count(&t->type); i++) {
    double v = tensor_at(t, i);
    sum += (isnan(v) ? 1000 : isinf(v) && v < 0 ? 100 : v) * (double)((i * 29 + 7) % 31 - 15);
  }
  return (int64_t)sum;
}

/* A variable of g, and its numbers among `values`. */
static inline struct node *check_leaf(struct graph *g, void (*fill)(struct tensor *t, int seed, bool nan),
                                      const char *name, const struct type *t, int seed, bool nan,
                                      struct values *values) {
  struct tensor v = {*t, arena_alloc(g->arena, (size_t)type_bytes(t) + 1)};
  fill(&v, seed, nan);
  values_put(values, name, t, v.data);
  return build_variable(g, name, t, true, false);
}

#endif

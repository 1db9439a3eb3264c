/* SPDX-License-Identifier: Apache-2.0 */
/* Random models: typed source graphs that verify, replicate and differentiate. The same seed and size give the
 * same graph; a smaller size gives its beginning, so that a failure can be cut down. */
#ifndef TESTS_SUPPORT_GRAPHS_H
#define TESTS_SUPPORT_GRAPHS_H

#include "tests/support/eval.h"
#include "tests/support/random.h"

struct model_options {
  uint64_t seed;
  int size;       /* steps of construction, each a few nodes */
  bool batch;     /* inputs have the symbolic batch as first axis; else all shapes are fixed */
  bool smooth;    /* f64 and differentiable everywhere: for finite differences */
  bool updates;   /* variables are trained, by sgd, momentum and adam */
  bool annotated; /* some nodes ask for a device, cpu:0 to cpu:3 */
};

struct model {
  struct graph *g;
  struct node *variables[8];
  int nvariables;
  struct node *scalar; /* depends on the variables: a loss; may be NULL */
};

struct model random_model(struct arena *a, const struct model_options *o, struct diags *d);

/* Values for its inputs and variables; inputs with `rows` rows. */
void model_values(struct arena *a, const struct graph *g, int64_t rows, uint64_t seed, bool smooth,
                  struct values *inputs, struct values *variables);

/* x, kept to multiples of 1/16 within -8 .. 8 by elementwise ops: sums and products of such are exact in f32 in
 * any order. */
struct node *build_grid(struct graph *g, struct node *x);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients against finite differences in f64.
 *
 * The loss is sum(w * y) + sum(x) with random weights w: the second sum sees to it that x has a gradient, of 1 at
 * least. The derivative is taken by the central difference of five points, D(h) = (8 (f(x+h) - f(x-h)) - (f(x+2h)
 * - f(x-2h))) / 12h, of each element of y apart, so that only elements that change count. Its truncation error is
 * h^4/30 |f'''''|, 16 times less for h/2 than for h: |D(h) - D(h/2)| bounds that of D(h/2) 15 times over. Its
 * rounding error is 1.5/h times that of f, for which 64 u (|y| + 1) are granted, u = 2^-53: 4 ulp of an
 * elementwise body, or gamma(30) of a sum of 30 terms near 1. */
#ifndef TESTS_SUPPORT_FINITE_H
#define TESTS_SUPPORT_FINITE_H

#include "tests/support/eval.h"
#include "tests/support/random.h"

/* A function and its gradients, as outputs of a graph. */
struct finite {
  struct node *y;
  const double *weights; /* one per element of y */
  int nleaves;
  struct node *const *leaves; /* variables; those that are no floats are left alone */
};

/* Adds the gradients of y by its leaves to g's outputs, each named <leaf>.grad. */
struct finite finite_add(struct graph *g, struct rng *r, struct node *y, int nleaves,
                         struct node *const *leaves);
/* Compares all gradients: `expanded` is g after the grad pass, `gradients` its values at `variables`, which hold
 * the inputs too. What is wrong, or NULL. */
const char *finite_breach(struct arena *a, const struct graph *g, const struct finite *f,
                          const struct graph *expanded, const struct tensor *gradients,
                          struct values *variables);
/* Elements compared since the start of the program. */
long finite_compared(void);

#endif

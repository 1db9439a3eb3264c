/* SPDX-License-Identifier: Apache-2.0 */
/* Both graphs in numbers: what the numeric claim compares. */
#ifndef DGC_IR_CERTIFY_NUMERIC_H
#define DGC_IR_CERTIFY_NUMERIC_H

#include "ir/certify/context.h"

/* A node that cannot be computed, and why. What depends on it is not computed either, and is not listed. */
struct uncomputed {
  const struct node *node;
  const char *why;
  struct uncomputed *next;
};

/* Floats are f64. A tensor without data is not known. */
struct numbers {
  struct arena *arena; /* of the whole claim */
  struct arena *step;  /* of the values of a step */
  uint64_t seed;
  struct uncomputed *gaps;
};

struct type certify_wide(struct type t);
/* Random numbers for what a step begins with, the same for equal names and types. Whole ones are small for inputs, and
 * for variables larger than what a model begins with. */
struct tensor certify_draw(struct numbers *z, const char *name, const struct type *t, bool variable);
/* n, of this type, of these operands. Not known if one of them is not, or after noting a gap. A constant, and only
 * that, is computed as f32 where it is one: the builder has folded it so, perhaps in one graph only. */
struct tensor certify_compute(struct numbers *z, const struct node *n, const struct type *type,
                              const struct tensor *in, bool constant);
/* By id: made of constants alone. */
uint8_t *certify_constants(struct arena *a, const struct graph *g);
struct tensor certify_gap(struct numbers *z, const struct node *n, const char *why);
/* Elements [begin, begin + count) of an axis; tensors one behind the other along it. */
struct tensor certify_cut(struct numbers *z, const struct tensor *x, int axis, int64_t begin, int64_t count);
struct tensor certify_append(struct numbers *z, const struct tensor *x, int count, int axis);

/* The source, as towers that see their own rows and no others compute it. */
struct simulation;
/* `c` has source, placed, towers and batch. */
struct simulation *certify_simulation(struct certify *c, struct numbers *z);
/* The variable's first value of a tower's copy; of all towers if it has no copies. */
struct tensor certify_simulated_state(const struct simulation *m, const struct node *variable, int tower);
/* One step: reads and writes the state. */
void certify_simulate_step(struct simulation *m);
/* The value of a node of the source in the last step. */
struct tensor certify_simulated_value(const struct simulation *m, const struct node *n);

#endif

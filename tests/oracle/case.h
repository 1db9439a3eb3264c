/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as StableHLO with what they are to give, for another program to run: see oracle.py. */
#ifndef TESTS_ORACLE_CASE_H
#define TESTS_ORACLE_CASE_H

#include "tests/support/bound.h"

/* What this run of the program writes. */
struct asked {
  const char *only; /* the case of this name, or those that begin so: "op conv*"; NULL: all */
  bool nodes;       /* each node's value, not only the outputs': to find the first that differs */
};

/* Whether the case of this name is asked for: anything else need not be made. */
bool case_asked(const struct asked *q, const char *name);
/* Writes the module of a concrete graph, its arguments, and what node_eval makes of them. `tolerance` is a word that
 * oracle.py knows. `at` are bounds by node id, or NULL. Ends the program where anything fails. */
void case_write(const struct asked *q, const char *name, const char *tolerance, struct graph *g,
                const struct values *inputs, const struct values *variables, const struct bounds *at);

/* The module of `forward`, whose first output is a loss, and the values of `backward`'s outputs: its gradients by the
 * variables of their names. */
void case_write_gradients(const struct asked *q, const char *name, const struct graph *forward,
                          const struct graph *backward, const struct values *inputs,
                          const struct values *variables);
/* The module of a concrete graph without the places that its nodes come from. */
const char *case_text(struct arena *a, const struct graph *g);

/* g in f64: all f32 are f64, so that rounding hides nothing. NULL where there are ops of f32 alone. */
struct graph *graph_wide(struct arena *a, const struct graph *g);
/* All floats as f64. */
struct values values_wide(struct arena *a, const struct values *v);

/* The suites. */
void write_ops(const struct asked *q);
void write_samples(const struct asked *q);
void write_gradients(const struct asked *q);
void write_op_gradients(const struct asked *q);
void write_kinks(const struct asked *q);

#endif

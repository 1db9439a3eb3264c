/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle: a whole graph of any stage, evaluated node by node with node_eval. */
#ifndef TESTS_SUPPORT_EVAL_H
#define TESTS_SUPPORT_EVAL_H

#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

/* Tensors by name: the inputs of a step, or variables between steps. */
struct values {
  struct arena *arena;
  struct map map;
};

struct values values_make(struct arena *a);
/* NULL if there is none. */
struct tensor *values_get(const struct values *v, const char *name);
/* Copies the elements. */
void values_put(struct values *v, const char *name, const struct type *t, const void *data);
/* The number of the batch's first row, which what draws for its rows is given beside the model's inputs. */
void values_put_first_row(struct values *inputs, int64_t number);
/* Independent copies of all tensors. */
struct values values_copy(struct arena *a, const struct values *v);

/* g with its batch fixed: the same nodes with concrete types, nothing folded. A graph that is concrete already
 * is returned as it is. g holds no `gradient`. */
struct graph *graph_concrete(struct arena *a, struct graph *g, int64_t batch);

/* A node exactly as it is described, not folded. NULL if that is no node. */
struct node *raw_node(struct graph *g, enum op_id op, int ninputs, struct node *const *inputs, int nattrs,
                      const struct attr *attrs, const struct type *type);

/* One step of a concrete graph: `out[id]` is the value of each live node, elsewhere its data is NULL. Inputs and
 * variables are found by name; a copy "v/replica_1" that is not among the variables starts as "v". Assigned values
 * are in `variables` afterwards, under the name of the variable node. False (and a line on stderr) if something is
 * missing. */
bool graph_eval(struct arena *a, const struct graph *g, const struct values *inputs, struct values *variables,
                struct tensor *out);

/* The value of the output of this name; NULL if there is none. `values` as graph_eval has filled it. */
const struct tensor *output_value(const struct graph *g, const struct tensor *values, const char *name);

/* The text of a graph. */
const char *graph_text(struct arena *a, const struct graph *g);

#endif

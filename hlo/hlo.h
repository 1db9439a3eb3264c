/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as StableHLO, the portable form that XLA and other compilers read: an independent oracle, and the way to what
 * they compile for.
 *
 * A module holds a function for each graph. Its arguments are the graph's inputs, then its variables, each in the order
 * of the nodes; its results the outputs that have a value, in the order of the graph, then what assigned variables hold
 * after the step, in the order of the variables. All that the devices of a placed graph do is in its one function. */
#ifndef DGC_HLO_HLO_H
#define DGC_HLO_HLO_H

#include "ir/graph/graph.h"

/* An argument or a result of a function: a variable, an input or an output of the graph. */
struct hlo_port {
  const struct node *node;     /* an input or a variable, of the first device; NULL: an output */
  const struct output *output; /* NULL: none */
  struct type type;
  bool split; /* each device has its own rows, those of one behind those of the other */
};
struct hlo_ports {
  struct hlo_port *arguments, *results;
  int narguments, nresults;
  const struct node **copies; /* [argument * devices + device]: the variable that it is there */
};

/* A graph, the name of its function, and its rows where they are not in the graph; 0: not known. */
struct hlo_function {
  const struct graph *graph;
  const char *name;
  int64_t batch;
  /* So many devices run it, each with its rows and its copies of variables: the graph is one that is replicated,
   * and all of them do the same. 0, 1: all that the graph does is in the function. */
  int devices;
  /* What is to be known to run it; NULL: it is only printed. An argument that a result replaces may be overwritten
   * then. */
  struct hlo_ports *ports;
};

/* The module `name` of these functions. False: something has no form there, see `d`. */
bool hlo_print(struct str *s, const char *name, const struct hlo_function *functions, int count,
               struct diags *d);

#endif

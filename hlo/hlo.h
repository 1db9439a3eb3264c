/* Graphs as StableHLO, the portable form that XLA and other compilers read: an independent oracle, and the way to what
 * they compile for.
 *
 * A module holds a function for each graph. Its arguments are the graph's inputs, then its variables, each in the order
 * of the nodes; its results the outputs that have a value, in the order of the graph, then what assigned variables hold
 * after the step, in the order of the variables. All that the devices of a placed graph do is in its one function. */
#ifndef DGC_HLO_HLO_H
#define DGC_HLO_HLO_H

#include "ir/graph/graph.h"

/* A graph, the name of its function, and its rows where they are not in the graph; 0: not known. */
struct hlo_function {
  const struct graph *graph;
  const char *name;
  int64_t batch;
};

/* The module `name` of these functions. False: something has no form there, see `d`. */
bool hlo_print(struct str *s, const char *name, const struct hlo_function *functions, int count,
               struct diags *d);

#endif

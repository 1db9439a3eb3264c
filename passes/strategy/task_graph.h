/* SPDX-License-Identifier: Apache-2.0 */
/* The part of one task */
#ifndef DGC_PASSES_STRATEGY_TASK_GRAPH_H
#define DGC_PASSES_STRATEGY_TASK_GRAPH_H

#include "ir/graph/config.h"
#include "ir/type.h"

struct graph;
struct node;
struct strategy;

struct task_graph {
  int process;       /* that runs the task; -1: the graph is that of all tasks, and nothing below is set */
  const int *of;     /* by device: its process */
  int *first, count; /* by process: the first of its devices that has towers, else of all its devices */
  int nworkers;      /* the first processes, which have towers */
  int first_tower, ntowers; /* of the task */
};

static inline bool task_graph_is_whole(const struct task_graph *p) { return p->process < 0; }
/* Whether the device is one of the task's. */
static inline bool task_graph_has(const struct task_graph *p, int device) {
  return p->process < 0 || p->of[device] == p->process;
}

/* Whether a task of this source graph can be compiled without the others: nothing but variables, sums, results and what
 * is computed once for all crosses from task to task. */
bool task_graph_is_possible(struct arena *a, const struct graph *g, const struct config *c,
                            const struct strategy *s);
/* The part that the configuration names. False after an error: there is no such task. */
bool task_graph_find(struct arena *a, const struct config *c, const struct strategy *s,
                     struct task_graph *out, struct diags *d);

/* x to a device of another task: an output of g that stands for itself. Messages are received in the order of their
 * numbers, the first first, the same for all tasks; what a message depends on has a smaller one. */
struct node *task_graph_send(struct graph *g, struct node *x, int to, const int64_t *order, int norder);
/* What another task sends; norder 0: what it has and does not send. In g's build context, but for the device. */
struct node *task_graph_remote(struct graph *g, const char *name, const struct type *t, int from, int device,
                               const int64_t *order, int norder);

#endif

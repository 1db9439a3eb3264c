/* SPDX-License-Identifier: Apache-2.0 */
/* From the fused graph to the plan. */
#ifndef DGC_PLANNER_PLANNER_H
#define DGC_PLANNER_PLANNER_H

#include "ir/plan/plan.h"

/* The fused graph as steps in order, and buffers at fixed offsets; in `a`. NULL after an error. */
struct plan *plan_build(struct arena *a, const struct graph *g, struct diags *d);
/* The same for tasks of the cluster that are processes of their own. */
struct plan *plan_build_processes(struct arena *a, const struct graph *g, struct diags *d);

/* The same where losses and metrics stay with the process that computes them. */
struct plan *plan_build_local_results(struct arena *a, const struct graph *g, struct diags *d);

#endif

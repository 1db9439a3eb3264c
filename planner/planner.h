/* From the fused graph to the plan. */
#ifndef DGC_PLANNER_PLANNER_H
#define DGC_PLANNER_PLANNER_H

#include "ir/plan/plan.h"

/* The fused graph as steps in order, and buffers at fixed offsets; in `a`. NULL after an error. */
struct plan *plan_build(struct arena *a, const struct graph *g, struct diags *d);

#endif

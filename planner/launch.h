/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel and what it is called with: what a node of a fused graph becomes. */
#ifndef DGC_PLANNER_LAUNCH_H
#define DGC_PLANNER_LAUNCH_H

#include "ir/scalar/split.h"

/* One argument of a launch, in the kernel's order. */
struct launch_arg {
  int input;      /* the node's input that is read, or -1 */
  int result;     /* the node's result that is written, or -1 */
  int64_t offset; /* bytes into that value */
};

struct launch {
  const struct kernel *kernel;
  const int64_t *sizes; /* see kernel.h */
  struct segments segments;
  const struct launch_arg *args;
  int64_t traffic; /* bytes */
};

#endif

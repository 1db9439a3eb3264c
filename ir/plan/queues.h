/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a plan in queues: devices that copy beside their other work.
 *
 * Such a device copies what other devices of its kind have for it in one queue, and does all else in another; each
 * keeps the plan's order. So does the only queue of other devices. What lies in different queues is ordered by
 * waits for points, and by nothing else. The plan's signals and waits say what may be ordered; what is ordered is
 * what the data need: a step comes behind what wrote its operands, and before it writes, behind what read or wrote
 * there last, be it an earlier value in the same bytes of the arena. Memory is reused in the order of the plan's
 * steps, so the waits for that are found here, from the buffers alone: a plan that said them would say them for
 * devices that have no need of them. */
#ifndef DGC_IR_PLAN_QUEUES_H
#define DGC_IR_PLAN_QUEUES_H

#include "ir/plan/plan.h"

enum queue { QUEUE_WORK, QUEUE_COPIES, QUEUE_COUNT };

/* How a device takes its steps. */
enum manner {
  MANNER_AT_ONCE,   /* a step is done when it has been given: nobody waits for more than the signal */
  MANNER_IN_ORDER,  /* later, in one queue */
  MANNER_COPY_QUEUE /* later, copies from other such devices in a queue of their own */
};

/* Where a queue has done its step `after`, and all before it; -1: where the run begins. */
struct queue_point {
  int device, after;
  enum queue queue;
};

struct queue_wait {
  int point;
  const struct queue_wait *next; /* before the same step */
};

struct device_queues {
  enum queue *queue; /* by step */
  int *point;        /* by step, one further on: that behind it, or -1; first that at the beginning */
  const struct queue_wait **waits; /* by step: its queue's, before it; then QUEUE_WORK's at the end */
  /* Of a step in QUEUE_COPIES: the last step of QUEUE_WORK that is known to be done when it begins, or -1, and the
   * first one that waits for it, or the number of steps. */
  int *after, *until;
};

struct queues {
  struct device_queues *devices;
  struct queue_point *points; /* those that are waited for */
  int npoints, nwaits;
};

/* Of a plan for which plan_verify holds; `manners` by device. Where a run begins, all queues of work know of all that
 * was done before; at its end they know, together with the devices of the manner AT_ONCE, of all that has been done in
 * it. Maps of one kernel next to each other wait before the first of them and are waited for behind the last, so that
 * they can be one launch. Lives in `a`. */
struct queues *queues_make(struct arena *a, const struct plan *p, const enum manner *manners);

#endif

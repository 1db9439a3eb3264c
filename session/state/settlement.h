/* SPDX-License-Identifier: Apache-2.0 */
/* What is settled for all graphs of the model, by the options, the model and the processes */
#ifndef DGC_SESSION_STATE_SETTLEMENT_H
#define DGC_SESSION_STATE_SETTLEMENT_H

#include "ir/graph/config.h"

struct settlement {
  struct target listed; /* the devices of the options */
  struct target target; /* and what the strategy adds to them */
  struct config config; /* once it is settled, but for the batch */
  bool done;            /* it is settled */
  bool free; /* workers apply their gradients as they come, by an option or the model's strategy: */
  int64_t unordered_bound; /* see runtime/mpi/unordered.h */
  int worker;              /* of asynchronous training in no order: whose graph is compiled */
  int task;                /* of the cluster, that this process is; -1: as the launcher numbers it */
  const char
      *hosts; /* the cluster by the hosts that its processes run on, once they have met; NULL: it is one */
  const char *why_sums; /* what is to be said of how sums travel, once that is known; NULL: nothing */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A step of one worker and the parameter servers, in which no other worker takes part */
#ifndef DGC_SESSION_WORKER_H
#define DGC_SESSION_WORKER_H

#include "session/run.h"

struct transport;

/* Loaded for this process. */
struct worker_step {
  struct loaded *
      step; /* its `exec`: of a worker the whole; of a server the last stage; NULL: this process has no part */
  struct exec *first;               /* of a server: before the worker begins */
  struct exec **asked;              /* and when what it receives is there; NULL behind them */
  const struct plan_stages *stages; /* their plans, and that of `step`; of a worker NULL */
  struct traced *traced_first, **traced_asked;
  struct engines engines;
};

/* A training step of the worker of this number, with the batch for itself. `t`: what its messages go by; NULL: this
 * process has no part in it. All processes call it in the same order. An error where a worker would have to wait for
 * others. To be unloaded, after an error, too. */
enum dgc_status worker_plan(struct dgc_session *s, int worker, int64_t batch, const struct transport *t,
                            struct worker_step *out);
/* All 0 is allowed. */
void worker_unload(struct worker_step *w);

#endif

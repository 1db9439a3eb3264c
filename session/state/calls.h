/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that are going on. */
#ifndef DGC_SESSION_STATE_CALLS_H
#define DGC_SESSION_STATE_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>

struct arena;

struct calls {
  atomic_bool stop;    /* asked for by dgc_stop, and not answered yet */
  int count;           /* a second one comes from the handler of progress */
  bool listening;      /* which is running */
  struct arena *inner; /* of the last call that came from there: its message */
  int process;         /* that has the threads and devices of the session; 0: there are none yet */
};

#endif

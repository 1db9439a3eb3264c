/* SPDX-License-Identifier: Apache-2.0 */
/* What is written of runs */
#ifndef DGC_SESSION_STATE_TRACING_H
#define DGC_SESSION_STATE_TRACING_H

#include <stdbool.h>

struct dgc_session;
struct plan_run;
struct trace;

struct tracing {
  struct trace *trace; /* see trace.h; NULL: there is none at present */
  bool (*run)(struct dgc_session *s, const struct plan_run *r);
  bool begun; /* the file of the option trace has been begun, if not ended, too */
};

#endif

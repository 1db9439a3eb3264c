/* SPDX-License-Identifier: Apache-2.0 */
/* What a training, an evaluation or a benchmark did and when, as a file of Chrome's trace events */
#ifndef DGC_SESSION_TRACE_H
#define DGC_SESSION_TRACE_H

#include "session/run.h"

/* Begins the file of the option trace, if it is given and not begun. */
enum dgc_status trace_open(struct dgc_session *s);
/* Writes its end: the file is there only then. NULL is allowed. Reports a file that cannot be written. */
enum dgc_status trace_close(struct dgc_session *s);
/* What the host did from `begin` on, a time of clock_ns, until now: "input", "checkpoint". */
void trace_span(struct dgc_session *s, const char *what, uint64_t begin);
#endif

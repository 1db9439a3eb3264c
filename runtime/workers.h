/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads: a fixed team that runs one function at a time, the caller being worker 0.
 *
 * Handing out work takes no lock and, while the team is awake, no system call: workers spin for a while
 * between two runs and park only after that. Inside of a run nobody sleeps. */
#ifndef DGC_RUNTIME_WORKERS_H
#define DGC_RUNTIME_WORKERS_H

#include "base/diag.h"

struct workers;
typedef void work_fn(void *arg, int worker);

/* `count` >= 1 workers, the caller included. NULL after an error in `d`. */
struct workers *workers_create(int count, struct diags *d);
/* NULL is allowed. */
void workers_destroy(struct workers *w);
int workers_count(const struct workers *w);
/* Calls fn(arg, i) for every worker i, each on its own thread; returns when all calls have. One run at a time. */
void workers_run(struct workers *w, work_fn *fn, void *arg);
/* Passes the time between two looks at something another worker will change; `*spins` starts at 0. True when it
 * has been waiting for long, and asks the system to run others. */
bool workers_relax(const struct workers *w, unsigned *spins);
/* Cores that this process may use. */
int cpu_cores(void);

#endif

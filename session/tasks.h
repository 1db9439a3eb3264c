/* SPDX-License-Identifier: Apache-2.0 */
/* What the tasks of a cluster of processes have done with their time. */
#ifndef DGC_SESSION_TASKS_H
#define DGC_SESSION_TASKS_H

#include "session/session.h"

/* Collects it in the first process, as dgc_tasks returns it, and begins anew: all processes call it when `seconds` have
 * passed since they did so last. One process alone has nothing to tell. */
enum dgc_status tasks_collect(struct dgc_session *s, double seconds);

/* Begins to count. */
void tasks_begin(struct dgc_session *s);

/* Fills in how much slower than the others each task is, and how many wait for the slowest, from the other
 * fields. Tasks of a job stand next to each other. Works in `scratch`. */
void tasks_judge(struct arena *scratch, struct dgc_task *tasks, int count);

#endif

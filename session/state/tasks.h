/* SPDX-License-Identifier: Apache-2.0 */
/* What the tasks of a cluster did */
#ifndef DGC_SESSION_STATE_TASKS_H
#define DGC_SESSION_STATE_TASKS_H

struct dgc_task;

struct tasks_seen {
  struct dgc_task *items; /* NULL: that was never asked for */
  int count;
};

#endif

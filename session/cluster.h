/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster that a session runs in */
#ifndef DGC_SESSION_CLUSTER_H
#define DGC_SESSION_CLUSTER_H

#include "ir/target.h"
#include "session/session.h"

struct cluster {
  const char *spec; /* as cluster_parse reads it; NULL: there is none */
  const char *from; /* who says so: "--cluster", "TF_CONFIG", "the launcher" */
  const char *task; /* this process: "worker:1"; NULL: the launcher's numbers hold */
  const char *task_from;
};

/* Without the evaluator, which is no task of training: of that, the session knows from then on. In the process that is
 * the evaluator there is no cluster. An error if TF_CONFIG cannot be read, or there are several evaluators. */
enum dgc_status session_cluster(struct dgc_session *s, struct cluster *out);
/* How many processes the tasks of the cluster are, and which of them this one is, by the launcher's numbers. 1: all of
 * them are this process; an evaluator is alone, too. Once session_cluster was called. */
int session_processes(const struct dgc_session *s, int *process);
/* The cluster of these devices by the hosts that its tasks run on as processes, as cluster_parse reads it:
 * "worker=a:0,a:0,b:0". NULL: there is one host, or tasks are not numbered from 0 on. */
const char *session_hosts(struct dgc_session *s, const struct target *t, const struct transport *transport);
/* The number of this process's task among those of the target, -1 if nothing names it; an error if there is none of
 * that name. */
enum dgc_status session_task(struct dgc_session *s, const struct cluster *c, const struct target *t,
                             int *task);

#endif

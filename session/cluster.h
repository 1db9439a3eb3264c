/* The cluster that a session runs in */
#ifndef DGC_SESSION_CLUSTER_H
#define DGC_SESSION_CLUSTER_H

#include "session/session.h"

struct cluster {
  const char *spec; /* as cluster_parse reads it; NULL: there is none */
  const char *from; /* who says so: "--cluster", "TF_CONFIG", "the launcher" */
  const char *task; /* this process: "worker:1"; NULL: the launcher's numbers hold */
  const char *task_from;
};

/* An error if TF_CONFIG cannot be read. */
enum dgc_status session_cluster(struct dgc_session *s, struct cluster *out);
/* The number of this process's task among those of the target, -1 if nothing names it; an error if there is none of
 * that name. */
enum dgc_status session_task(struct dgc_session *s, const struct cluster *c, const struct target *t,
                             int *task);

#endif

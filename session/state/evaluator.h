/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator of a cluster, and what it has seen */
#ifndef DGC_SESSION_STATE_EVALUATOR_H
#define DGC_SESSION_STATE_EVALUATOR_H

#include <stdbool.h>
#include <stdint.h>

struct transport;

/* What the evaluator knows of the file that it watches. */
struct watched {
  bool begun;
  struct seen {
    uint64_t inode;
    int64_t seconds, nanoseconds;
  } seen;            /* as it was when it was looked at last; all 0: never */
  bool restored;     /* something was */
  char checksum[32]; /* of that, if it has one */
  bool told;         /* that the training has ended, */
  int64_t saved;     /* and the step that it saved last; -1: none */
};

/* The process that evaluates beside a training (evaluator.c). */
struct evaluator {
  int tasks;                         /* that the cluster names: 0 or 1 */
  bool here;                         /* this process is that one */
  const struct transport *transport; /* between it and the first task; else NULL */
  struct watched watched;
};

#endif

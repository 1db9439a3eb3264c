/* SPDX-License-Identifier: Apache-2.0 */
/* The metric that a training watches */
#ifndef DGC_SESSION_STATE_BEST_H
#define DGC_SESSION_STATE_BEST_H

#include <stdbool.h>
#include <stdint.h>

/* What is known of the metric that a training watches; a checkpoint holds it. */
struct best_so_far {
  const char *what;  /* "val.loss:min"; NULL: nothing */
  int metric;        /* the number of the model's measure */
  bool most;         /* the greatest is the best */
  double value;      /* the best so far, */
  int64_t step;      /* and the step behind which it was; -1: there is none */
  int64_t waited;    /* evaluations since */
  int64_t evaluated; /* the step behind which the last evaluation was; -1: there was none */
};

struct best_of_training {
  struct best_so_far so_far;
  struct best_so_far
      last;           /* with the evaluation behind the last step, which was not due; `what` NULL: none was */
  const char **names; /* "val.loss": of the model's measures */
};

#endif

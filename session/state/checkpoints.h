/* SPDX-License-Identifier: Apache-2.0 */
/* What came from checkpoints and what goes into them */
#ifndef DGC_SESSION_STATE_CHECKPOINTS_H
#define DGC_SESSION_STATE_CHECKPOINTS_H

#include "runtime/data/claim.h"
#include "session/state/options.h"

struct checkpoint_writer;

struct restored {
  bool any;
  const char *file;     /* the last one, */
  int64_t step;         /* of this step, */
  int64_t towers;       /* made with so many; 0: it does not say */
  struct list anew;     /* variables that it does not hold, */
  bool anew_told;       /* which has been said */
  struct list left_out; /* what it holds beside variables of the model */
};

/* What goes into checkpoints. */
struct saving {
  struct checkpoint_writer *writer; /* NULL until something is saved */
  int64_t step;                     /* of what was saved last; -1: nothing was */
  struct list files;                /* those that hold what the session has, or had: by their real paths */
  const char *last;                 /* the real path of the file that was restored or saved last, */
  uint64_t stamp;                   /* as it was then */
  struct file_claim claims[2];      /* the files of the options checkpoint and keep-best, while it trains */
};

#endif

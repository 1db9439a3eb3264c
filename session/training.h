/* SPDX-License-Identifier: Apache-2.0 */
/* A training that is under way */
#ifndef DGC_SESSION_TRAINING_H
#define DGC_SESSION_TRAINING_H

#include "session/batches.h"
#include "session/losses.h"
#include "session/position.h"
#include "session/run.h"
#include "session/unordered.h"

struct training {
  struct dgc_session *s;
  struct dataset *data;
  struct loader *loader;
  struct unordered_training *unordered; /* NULL: steps have an order */
  struct goal goal;
  double begin, epoch_begin, reported; /* the epoch's: as if its evaluations took no time */
  struct losses *losses;               /* of the epoch so far */
  struct dataset *test;                /* to evaluate on as it goes; NULL: it does not */
  struct dgc_metric *validation, *rates;
  bool evaluated, improved; /* behind the present step */
  bool told;                /* that the training ends */
  bool alone;               /* the other processes are in their steps: nothing is done that takes them all */
  bool kept;                /* the best is on its way to the disk, or was */
  int64_t rows, first_step;
  int64_t saved_step; /* -1: it has saved none */
  bool stop;          /* on_progress wants it */
  bool stopped;       /* dgc_stop was called */
  unsigned own; /* what this process wants, where steps have no order: the others do not know of it yet */
  bool lost;    /* another process does not answer */
  bool unsaved; /* what was to be saved could not be */
  bool saving;  /* a checkpoint may be on its way to the disk */
  bool due;     /* as much time has passed as is to pass between two checkpoints */
  double saved; /* when the last one was written, or training began */
};

/* What a process asks of all, as one bit each. */
enum { STOPPED = 1, STOP = 2, DUE = 4, UNSAVED = 8 };

/* What all have agreed on. */
void training_take_flags(struct training *t, unsigned flags);
bool training_is_done(const struct training *t);
/* What ends the training: a loss that is no number, by its name if there are several. */
enum dgc_status training_no_number(struct training *t, const struct loaded *l, int output, double value,
                                   int64_t step);
/* Tells on_progress where the training is, if it is time to. */
enum dgc_status training_report(struct training *t, const struct batch *b, bool end);
/* Behind a batch and its step. */
enum dgc_status training_end_batches(struct training *t, const struct batch *b);
/* Whether there is to be a checkpoint. */
bool training_is_due(const struct training *t, const struct batch *b);
enum dgc_status training_begin_save(struct training *t);
/* All steps of a training whose steps have no fixed order. */
enum dgc_status train_unordered(struct training *t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a training measures of its batches: each loss, and its metrics, over the epoch so far */
#ifndef DGC_SESSION_LOSSES_H
#define DGC_SESSION_LOSSES_H

#include "session/run.h"

struct losses;

/* A loss that is infinite or not a number, where that is not allowed; `l` NULL: there was none. */
struct odd_loss {
  const struct loaded *l;
  int output;
  double value;
  int64_t step;
};

/* It lives as long as the call. */
struct losses *losses_begin(struct dgc_session *s);
/* An epoch begins. */
void losses_clear(struct losses *all);
/* Asks for what the run of a batch gave, before it waits for what the one before gave, so that the devices have work
 * meanwhile. `step`: its number, from 1. */
enum dgc_status losses_read_begin(struct losses *all, const struct loaded *l, int64_t rows, int64_t step,
                                  struct odd_loss *odd);
/* Waits for what was asked for. */
enum dgc_status losses_read_end(struct losses *all, struct odd_loss *odd);
/* Of steps in no order, only the sum of all losses is known: each times its rows, and their rows; negative to take them
 * back. */
void losses_add(struct losses *all, double sum, double rows);
/* The mean so far, of all losses together; a NaN before there is one. */
double losses_mean(const struct losses *all);
/* The means by name; 0 where they are not known. They live until the next call. */
int losses_named(struct losses *all, const struct dgc_metric **out);
/* The metrics so far; 0 where there are none. */
int losses_metrics(struct losses *all, const struct dgc_metric **out);

#endif

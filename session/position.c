/* SPDX-License-Identifier: Apache-2.0 */
/* A position in the data is the number of an epoch and of a batch in it. */
#include "session/position.h"

/* With another batch size, the position in the data is the nearest one behind. */
static void fit_batch(struct dgc_session *s, int64_t batch) {
  struct position *p = &s->position;
  if (p->batch && p->batch != batch) {
    if (s->restored)
      diag_warning(&s->diags, LOC_NONE,
                   "the checkpoint was made with batches of %lld rows, and now they have %lld",
                   (long long)p->batch, (long long)batch);
    p->index = p->index * p->batch / batch;
  }
  p->batch = batch;
}

/* Within an epoch, what is left of it is known by the rows that were done: where there are others now, or they come in
 * another order, some come twice. */
static void fit_rows(struct dgc_session *s, int64_t rows) {
  static const char *const orders[] = {"in their order", "shuffled"};
  struct position *p = &s->position;
  bool shuffle = !s->options.no_shuffle;
  if (s->restored && p->index && p->rows && (p->rows != rows || p->shuffle != shuffle)) {
    diag_warning(&s->diags, LOC_NONE,
                 "the checkpoint was made within an epoch of %lld rows, %s, and now there are %lld, %s: "
                 "in this epoch some come twice, and others not at all",
                 (long long)p->rows, orders[p->shuffle], (long long)rows, orders[shuffle]);
    diag_help(&s->diags, LOC_NONE, "to end this epoch, go on with the data and options that it began with");
  }
  p->rows = rows, p->shuffle = shuffle;
}

void session_fit_position(struct dgc_session *s, int64_t batch, int64_t rows) {
  fit_batch(s, batch);
  fit_rows(s, rows);
}

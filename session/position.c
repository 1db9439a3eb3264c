/* SPDX-License-Identifier: Apache-2.0 */
/* A position in the data is the number of an epoch and of a batch in it. */
#include "session/position.h"

#include "session/state/checkpoints.h"

#include "runtime/mpi/transport.h"

#include <stdlib.h>

/* With another batch size, the position in the data is the nearest one behind. */
static void fit_batch(struct dgc_session *s, int64_t batch) {
  struct position *p = &s->position;
  if (p->batch && p->batch != batch) {
    if (s->restored->any)
      diag_warning(&s->diags, LOC_NONE,
                   "the checkpoint was made with batches of %lld rows, and now they have %lld",
                   (long long)p->batch, (long long)batch);
    p->index = p->index * p->batch / batch;
  }
  p->batch = batch;
}

/* Within an epoch, what is left of it is known by the rows that were done: where there are others now, or they come in
 * another order, some come twice. */
static void fit_rows(struct dgc_session *s, int64_t rows, int64_t sample) {
  static const char *const orders[] = {"in their order", "shuffled"};
  struct position *p = &s->position;
  bool shuffle = !s->options.no_shuffle, within = s->restored->any && p->index && p->rows;
  bool differ = p->rows != rows || p->shuffle != shuffle;
  bool others = p->sample && sample && p->sample != sample;
  if (within && differ)
    diag_warning(&s->diags, LOC_NONE,
                 "the checkpoint was made within an epoch of %lld rows, %s, and now there are %lld, %s: "
                 "in this epoch some come twice, and others not at all",
                 (long long)p->rows, orders[p->shuffle], (long long)rows, orders[shuffle]);
  else if (within && others)
    diag_warning(&s->diags, LOC_NONE,
                 "the checkpoint was made within an epoch of other data, of as many rows: this epoch begins "
                 "with rows of those, and ends with rows of these");
  if (within && (differ || others))
    diag_help(&s->diags, LOC_NONE, "to end this epoch, go on with the data and options that it began with");
  p->rows = rows, p->shuffle = shuffle, p->sample = sample;
}

/* All processes have to know the same, of which each may have some of the files. */
static enum dgc_status take_sample(struct dgc_session *s, const struct dataset *ds, int64_t *sample) {
  const char **texts, *text;
  uint64_t sum;
  bool all;
  if (!dataset_sample(ds, &sum, &all, &s->diags)) return session_unread(s);
  if (!all && s->transport) {
    text = arena_printf(s->call, "%llu", (unsigned long long)sum);
    if (!transport_collect(s->transport, s->call, text, &texts)) return session_unreached(s);
    for (int i = 1; texts && i < s->transport->size; i++) sum += strtoull(texts[i], NULL, 10);
    text = arena_printf(s->call, "%llu", (unsigned long long)sum);
    if (!transport_tell(s->transport, s->call, &text)) return session_unreached(s);
    sum = strtoull(text, NULL, 10);
  }
  *sample = (int64_t)(sum & INT64_MAX);
  return DGC_OK;
}

enum dgc_status session_fit_position(struct dgc_session *s, int64_t batch, const struct dataset *ds) {
  int64_t sample = 0;
  enum dgc_status status = take_sample(s, ds, &sample);
  if (status) return status;
  fit_batch(s, batch);
  fit_rows(s, ds->rows, sample);
  return DGC_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous training in no fixed order: workers take the batches as they come to them. */
#ifndef DGC_SESSION_UNORDERED_H
#define DGC_SESSION_UNORDERED_H

#include "runtime/data/data.h"
#include "runtime/mpi/unordered.h"
#include "session/run.h"

struct unordered_training;

/* What the training says and hears meanwhile. */
struct unordered_hooks {
  unsigned (*wants)(void *training); /* as in unordered_acts */
  /* In a worker, before the batch: what the stretch has come to. */
  enum dgc_status (*told)(void *training, const struct batch *b, const struct unordered_sum *sum);
};

/* An error where the processes, or the options, are none for it. */
enum dgc_status session_unordered_allowed(struct dgc_session *s);
/* Of what the loader hands out this process reads what it is asked for. */
void session_unordered_loader(struct dgc_session *s, struct loader_options *o);
/* Plans the steps of all workers. All processes come here, and to what follows. */
enum dgc_status session_unordered_open(struct dgc_session *s, const struct dataset *ds, struct loader *loader,
                                       const struct unordered_hooks *hooks, void *training,
                                       struct unordered_training **out);
/* NULL is allowed. */
void session_unordered_close(struct unordered_training *f);
/* The next batches from the session's position on, so many or less, within the epoch. `odd` of *sum: 1 + the output
 * that was no number. */
enum dgc_status session_unordered_run(struct unordered_training *f, int64_t batches,
                                      struct unordered_sum *sum);
/* Wanted because of that. */
enum { UNORDERED_ODD = 1u << 16 };
/* The step of the first worker, for what it gives. */
const struct loaded *session_unordered_step(const struct unordered_training *f);

#endif

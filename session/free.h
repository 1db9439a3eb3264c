/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous training in no fixed order: workers take the batches as they come to them. */
#ifndef DGC_SESSION_FREE_H
#define DGC_SESSION_FREE_H

#include "runtime/data/data.h"
#include "runtime/mpi/free.h"
#include "session/run.h"

struct free_training;

/* What the training says and hears meanwhile. */
struct free_hooks {
  unsigned (*wants)(void *training); /* as in free_acts */
  /* In a worker, before the batch: what the stretch has come to. */
  enum dgc_status (*told)(void *training, const struct batch *b, const struct free_sum *sum);
};

/* An error where the processes, or the options, are none for it. */
enum dgc_status session_free_allowed(struct dgc_session *s);
/* Of what the loader hands out this process reads what it is asked for. */
void session_free_loader(struct dgc_session *s, struct loader_options *o);
/* Plans the steps of all workers. All processes come here, and to what follows. */
enum dgc_status session_free_open(struct dgc_session *s, const struct dataset *ds, struct loader *loader,
                                  const struct free_hooks *hooks, void *training, struct free_training **out);
/* NULL is allowed. */
void session_free_close(struct free_training *f);
/* The next batches from the session's position on, so many or less, within the epoch. `odd` of *sum: 1 + the output
 * that was no number. */
enum dgc_status session_free_run(struct free_training *f, int64_t batches, struct free_sum *sum);
/* Wanted because of that. */
enum { FREE_ODD = 1u << 16 };
/* The step of the first worker, for what it gives. */
const struct loaded *session_free_step(const struct free_training *f);

#endif

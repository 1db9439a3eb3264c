/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of a training: how they are dealt, whether the strategy takes them, what is in one */
#ifndef DGC_SESSION_BATCHES_H
#define DGC_SESSION_BATCHES_H

#include "runtime/data/loader.h"
#include "session/options.h"

/* How the rows are dealt to workers, which the strategy knows. */
enum dgc_status session_shard(struct dgc_session *s, struct loader_options *o);
/* Whether the strategy takes each batch that comes until `goal`, the last of an epoch of so many rows too, before the
 * first one is run; else its error, and which batch that is. */
enum dgc_status session_check_batches(struct dgc_session *s, const struct goal *goal, int64_t rows_of_epoch,
                                      const struct loader *loader);
/* Writes batch-N.npz, N of the option dump-batch: what the step reads, with which epoch and which rows of the data that
 * is, counted from the first that is used. */
enum dgc_status session_dump_batch(struct dgc_session *s, const struct dataset *ds, struct loader *loader,
                                   const struct batch *b);

#endif

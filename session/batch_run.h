/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a dataset: whether the strategy takes them, and one through its plan */
#ifndef DGC_SESSION_BATCH_RUN_H
#define DGC_SESSION_BATCH_RUN_H

#include "runtime/data/loader.h"
#include "session/run.h"
#include "session/state/data.h"

/* The entry that reads the data of a use. */
extern const enum entry_kind entries_of[DATA_USES];
/* How many rows there are to run over, for the choice of a strategy, of which all processes know the same. One that was
 * chosen before, and does not take the last batch, will be chosen again, but while a training goes on. */
void session_note_rows(struct dgc_session *s, enum data_use use, const struct dataset *data);
/* Whether the strategy takes a batch of so many rows, and the batches that `all` rows make; else an error. */
enum dgc_status session_takes(struct dgc_session *s, enum entry_kind kind, int64_t rows);
enum dgc_status session_takes_all(struct dgc_session *s, enum entry_kind kind, int64_t all);
/* Where loaders keep batches for the devices, as long as these are open; before that, memory of their own. */
struct batch_memory session_batch_memory(const struct dgc_session *s);
/* One batch of the dataset, which the loader has handed out, through its plan. */
enum dgc_status session_batch_run(struct dgc_session *s, enum entry_kind kind, const struct dataset *ds,
                                  struct loader *loader, const struct batch *b, struct loaded **out);
/* The same of a plan that is there; `r`: of what is loaded of it. */
enum dgc_status session_batch_run_on(struct dgc_session *s, const struct loaded *l, const struct plan_run *r,
                                     const struct dataset *ds, struct loader *loader, const struct batch *b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The files of an entry, and its batches */
#ifndef DGC_SESSION_DATA_H
#define DGC_SESSION_DATA_H

#include "runtime/data/loader.h"
#include "session/run.h"
#include "session/state/data.h"

/* The data that an entry's inputs come from; `*out` is NULL without an error when there is none and `optional`. It is
 * the caller's to close. */
enum dgc_status session_data(struct dgc_session *s, enum data_use use, bool optional, struct dataset **out);
/* The same for who checks it and reads no rows: they stay in the files. */
enum dgc_status session_data_in_files(struct dgc_session *s, enum data_use use, bool optional,
                                      struct dataset **out);
/* Whether anything says where the data for evaluation lies. Nothing is opened. */
enum dgc_status session_has_test_data(struct dgc_session *s, bool *there);
/* Of what is trained and evaluated on: a warning where both have some rows. NULL: nothing is evaluated on; that the
 * model's own test data is not, if it trains on other files than its own. */
void session_say_tested(struct dgc_session *s, const struct dataset *trained, const struct dataset *test);
/* A dataset and its loader, NULL before they are opened; data_reading_end closes both: an arena_guard calls it, too. */
struct data_reading {
  struct dataset *data;
  struct loader *loader;
};
void data_reading_end(void *reading);
/* Opens the loader, for one epoch of the batches that this process has in the entry. */
enum dgc_status data_reading_begin(struct dgc_session *s, enum entry_kind kind, struct data_reading *r);

#endif

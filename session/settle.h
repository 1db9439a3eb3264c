/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's model is compiled for, the same for all of its graphs */
#ifndef DGC_SESSION_SETTLE_H
#define DGC_SESSION_SETTLE_H

#include "session/session.h"
#include "session/state/settlement.h"

/* The devices; once there is a model, all that its graphs are compiled for is settled with them. */
enum dgc_status session_settle(struct dgc_session *s);
/* What is settled, for this batch (0: the session's). */
void session_configure(const struct dgc_session *s, struct config *c, int64_t batch);
/* Of asynchronous training in no fixed order: the processes that are workers, and those that are parameter servers, in
 * their order; both have room for all devices. How many workers. */
int session_workers(struct dgc_session *s, int *workers, int *servers, int *nservers);
/* The devices of s->settlement->worker alone carry towers. In `a`. */
void session_one_worker(const struct dgc_session *s, struct arena *a, struct config *c);
/* Whether the strategy is to be chosen. */
bool session_chooses(const struct dgc_session *s);
/* The rows of a global batch. */
int64_t session_batch(const struct dgc_session *s);
/* Options that were given win over what is in `c`. */
void options_over(const struct options *o, struct config *c);
/* The table of strategies alone. */
enum dgc_status session_compare(struct dgc_session *s, struct str *table);

#endif

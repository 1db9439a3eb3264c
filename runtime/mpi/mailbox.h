/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between a parameter server and one worker, taken apart from the runs of their plan: while the worker
 * computes, the server runs the plans of others. What the server sends is copied, and goes as soon as it can; what the
 * worker sends waits here until the server comes to it. */
#ifndef DGC_RUNTIME_MPI_MAILBOX_H
#define DGC_RUNTIME_MPI_MAILBOX_H

#include "runtime/mpi/transport.h"

struct mailbox;

/* For the messages of plans (the tags from TAG_MESSAGES on) with `worker`; all others go by `t` as they are. NULL:
 * there is no memory. */
struct mailbox *mailbox_create(const struct transport *t, int worker);
/* When the plans that were loaded with it are gone. NULL is allowed. */
void mailbox_destroy(struct mailbox *m);
/* What the stages of the plan (ir/plan/stages.h) are loaded with: what they send is done at once, and what they
 * receive, be it in several, is there when it has come since mailbox_begin. It lives as long as the mailbox. */
const struct transport *mailbox_transport(const struct mailbox *m);
/* The worker begins its step, and what it sends may come. */
void mailbox_begin(struct mailbox *m);
/* Takes what has come, so that the worker need not wait. */
void mailbox_poll(struct mailbox *m);
/* Whether the message with this tag has come. */
bool mailbox_has(const struct mailbox *m, int tag);
/* The worker has ended its step, and all stages have run: when this returns, nothing is under way. False after a
 * failure of the transport. */
bool mailbox_end(struct mailbox *m);

#endif

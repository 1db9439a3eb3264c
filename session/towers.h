/* SPDX-License-Identifier: Apache-2.0 */
/* Which process runs which towers, and so reads which rows of a batch */
#ifndef DGC_SESSION_TOWERS_H
#define DGC_SESSION_TOWERS_H

#include "session/model.h"

struct loader_options;

/* The towers of a batch of so many rows, by number: the process that runs each; the workers, whose towers follow each
 * other, the first of worker i being first[i], and first[workers] is `count`. They last until the call ends. */
struct towers {
  int count, *process, workers, *first;
};
enum dgc_status session_towers(struct dgc_session *s, enum entry_kind kind, int64_t batch,
                               struct towers *out);
/* Which towers' rows of a batch this process reads: its own, where tasks are processes. */
enum dgc_status session_own_towers(struct dgc_session *s, enum entry_kind kind, struct loader_options *o);
/* Tells of towers that a batch leaves without a row: what costs memory and time, and does nothing. */
void session_say_idle_towers(struct dgc_session *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* From an entry of the model to its graphs */
#ifndef DGC_SESSION_COMPILE_H
#define DGC_SESSION_COMPILE_H

#include "session/model.h"

struct pipeline_options;

/* The entry's source graph with the options in its header, for this batch (0: the session's). In `a`. */
struct graph *session_source(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch);
/* How passes are run and shown, as the options say. */
struct pipeline_options session_passes(const struct dgc_session *s);
/* The entry's graph for this batch (0: the session's) after the passes up to and including `last`, NULL = all. In `a`;
 * NULL after an error, see session_blame. */
struct graph *session_graph(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch,
                            const char *last);
/* The same of the part that this process has, where it is a task of a cluster that can be cut so; else all of it. */
struct graph *session_part(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch,
                           const char *last);

#endif

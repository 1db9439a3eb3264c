/* SPDX-License-Identifier: Apache-2.0 */
/* --memory-limit: a training step in so many bytes a device. */
#ifndef DGC_SESSION_MEMORY_LIMIT_H
#define DGC_SESSION_MEMORY_LIMIT_H

#include "session/session.h"

struct graph;
struct pipeline_options;

/* The placed graph `g` after the pass fuse, run and shown as `o` says, with as many activations computed again as it
 * takes for its plan to stay within the limit. In `a`; NULL after an error, as where that is not to be had. */
struct graph *session_within_limit(struct dgc_session *s, struct arena *a, struct graph *g,
                                   const struct pipeline_options *o);

#endif

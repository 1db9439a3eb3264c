/* SPDX-License-Identifier: Apache-2.0 */
/* First values out of checkpoints: what fits is loaded, what does not is told */
#ifndef DGC_SESSION_INIT_FROM_H
#define DGC_SESSION_INIT_FROM_H

#include "session/session.h"

/* Loads the files of the option init-from, in their order, once; not where the session goes on from a checkpoint. */
enum dgc_status session_init_from(struct dgc_session *s);

#endif

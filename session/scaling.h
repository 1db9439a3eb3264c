/* SPDX-License-Identifier: Apache-2.0 */
/* How long a step takes on any number of tasks, predicted */
#ifndef DGC_SESSION_SCALING_H
#define DGC_SESSION_SCALING_H

#include "session/model.h"

/* A table of the numbers of tasks and the algorithms of sums, or the same as JSON. */
enum dgc_status session_scaling(struct dgc_session *s, enum entry_kind kind, bool json, struct str *out);

#endif

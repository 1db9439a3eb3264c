/* SPDX-License-Identifier: Apache-2.0 */
/* Strategy auto: which one needs least */
#ifndef DGC_SESSION_AUTO_H
#define DGC_SESSION_AUTO_H

#include "ir/graph/config.h"
#include "session/session.h"

/* The strategy whose step is predicted to be shortest; of those that differ by less than a percent the one whose
 * fullest device holds least; of those the default, or the first. `sums`: how sums travel that every device needs,
 * where no other way is asked for; or NULL. The comparison is added to `table`. NULL after an error. */
const char *session_choose(struct dgc_session *s, const struct config *config, const char *sums,
                           struct str *table);

#endif

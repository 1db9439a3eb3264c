/* SPDX-License-Identifier: Apache-2.0 */
/* Graph text that is read: what options mean for it */
#ifndef DGC_SESSION_OPT_H
#define DGC_SESSION_OPT_H

#include "ir/graph/config.h"
#include "session/session.h"

/* Options that were given win over what a source graph's header says, as long as they can still matter. */
enum dgc_status session_override(struct dgc_session *s, struct config *c);
/* The option graph names none of these, which `path` holds: a usage error that lists them. */
enum dgc_status session_no_graph(struct dgc_session *s, const char *path, const char **names, int count);

#endif

/* Strategy auto: which one needs least */
#ifndef DGC_SESSION_AUTO_H
#define DGC_SESSION_AUTO_H

#include "session/session.h"

/* The strategy that moves least in a step; of those the one whose fullest device holds least; of those the default, or
 * the first. The comparison is added to `table`. NULL after an error. */
const char *session_choose(struct dgc_session *s, const struct config *config, struct str *table);

#endif

/* The options of a session by name, as dgc_set gives them */
#ifndef DGC_SESSION_OPTIONS_H
#define DGC_SESSION_OPTIONS_H

#include "session/session.h"

/* A usage error for a name or a value that there is not, and for a change that comes too late. A `value` of NULL stands
 * for true. */
enum dgc_status options_set(struct dgc_session *s, const char *name, const char *value);

#endif

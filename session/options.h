/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a session by name, as dgc_set gives them */
#ifndef DGC_SESSION_OPTIONS_H
#define DGC_SESSION_OPTIONS_H

#include "session/session.h"

/* A usage error for a name or a value that there is not, and for a change that comes too late. A `value` of NULL stands
 * for true. */
enum dgc_status options_set(struct dgc_session *s, const char *name, const char *value);

/* Forgets all that says how work is spread over devices, the batch with it. */
void options_drop_strategy(struct options *o);

/* The bound of a staleness "free:4" or "free", as text; NULL: it is none of these. */
const char *free_bound_of(const char *staleness);
/* --bits portable. */
bool options_portable(const struct options *o);

/* Whether it is to be done at this position, which is behind a step. */
bool every_due(const struct every *e, const struct position *p);

/* Where training is to end: after so many epochs or steps, -1 where it does not matter. */
struct goal {
  int64_t epochs, steps;
};
struct goal options_goal(const struct options *o);
bool goal_is_reached(const struct goal *g, const struct position *p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a session by name, as dgc_set gives them */
#ifndef DGC_SESSION_OPTIONS_H
#define DGC_SESSION_OPTIONS_H

#include "session/session.h"

/* A usage error for a name or a value that there is not, and for a change that comes too late. A `value` of NULL stands
 * for true. */
enum dgc_status options_set(struct dgc_session *s, const char *name, const char *value);

/* Takes back what the option was given. */
enum dgc_status options_unset(struct dgc_session *s, const char *name);
/* An error where one lacks another that it needs, or does not go with how the model is trained. */
enum dgc_status options_fit_training(struct dgc_session *s);

/* Forgets all that says how work is spread over devices, the batch with it. */
void options_drop_strategy(struct options *o);

/* A file that an option names, as it is set. */
struct option_file {
  const char *name; /* of the option */
  const char *path;
  enum dgc_file_use use;
  bool data, renames, of_each_process; /* how the path is written; process N of several has PATH.N, too */
};
/* Tells each, in the order of the options. */
void options_files(struct dgc_session *s, void (*tell)(void *user, const struct option_file *f), void *user);

/* The bound of a staleness "free:4" or "free", as text; NULL: it is none of these. */
const char *unordered_bound_of(const char *staleness);
/* --bits portable. */
bool options_portable(const struct options *o);

/* "--data test.csv": the file that is given for no input by name; NULL: there is none. */
const char *data_alone(const struct list *l);
/* Where the option dump-batch writes. */
const char *batch_file(struct arena *a, int64_t step);

/* Whether it is to be done at this position, which is behind a step. */
bool every_due(const struct every *e, const struct position *p);

/* Where training is to end: after so many epochs or steps, -1 where it does not matter. */
struct goal {
  int64_t epochs, steps;
};
struct goal options_goal(const struct options *o);
bool goal_is_reached(const struct goal *g, const struct position *p);

#endif

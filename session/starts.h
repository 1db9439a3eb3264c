/* SPDX-License-Identifier: Apache-2.0 */
/* First values that are those of other variables, where these come from files */
#ifndef DGC_SESSION_STARTS_H
#define DGC_SESSION_STARTS_H

#include "session/session.h"

#include "base/map.h"

/* Gives what was not loaded and begins as another variable does the value that this one has now. `loaded`: the
 * checkpoint that each variable came from, by its name. A warning, in which `path` is their file, says what is made of
 * the first value of such a variable otherwise and is not made again. Copies are not spread yet. */
enum dgc_status session_starts(struct dgc_session *s, const struct map *loaded, const char *path);

/* Tells once what the checkpoint does not hold and starts anew where a training goes on from it: a warning where
 * optimizers count steps that this had no part in. */
void session_say_anew(struct dgc_session *s);

#endif

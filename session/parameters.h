/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of the model that the option set has given: a checkpoint keeps them, and sets them again */
#ifndef DGC_SESSION_PARAMETERS_H
#define DGC_SESSION_PARAMETERS_H

#include "session/session.h"

#include "runtime/checkpoint.h"

/* The texts of a checkpoint, "set.hidden" with a value as the option has it; at most as many as the option has. In the
 * arena. What is no short text of printable ASCII is left out. */
void parameters_save(const struct dgc_session *s, struct arena *a, struct checkpoint_text *texts, int *n);
/* A warning where something will be left out of the file. */
void parameters_say_left_out(struct dgc_session *s, const char *path);
/* Whether those of the file can be some. */
bool parameters_are_good(const struct checkpoint *c);
/* Sets those that the model has and the option does not; whether there are any. The model is not compiled anew. */
bool parameters_restore(struct dgc_session *s, const struct checkpoint *c, const char *path);

#endif

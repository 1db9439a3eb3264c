/* SPDX-License-Identifier: Apache-2.0 */
/* Why an input's data must lie in a range, and what to do. */
#ifndef DGC_SESSION_RANGES_H
#define DGC_SESSION_RANGES_H

#include "frontend/frontend.h"
#include "runtime/data/data.h"
#include "session/session.h"

/* Adds to the error that says that `wrong` is out of the range who asks for it, and what to write instead. */
void session_say_limited(struct dgc_session *s, const struct dataset *ds, const struct model_input *input,
                         double wrong);

#endif

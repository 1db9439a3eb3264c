/* SPDX-License-Identifier: Apache-2.0 */
/* How early the receives of a plan for processes may be posted: from when on the bytes are free that a message goes to.
 * The plan itself says no more than when a message has to be there. */
#ifndef DGC_IR_PLAN_POSTS_H
#define DGC_IR_PLAN_POSTS_H

#include "ir/plan/plan.h"

/* By step of the device, of those that receive: before which step the message may come to lie in its place, at the
 * latest before its own; of other steps their own number. Of a plan for which plan_verify holds: then nothing that
 * ran before that step, or may still run on another device, touches the place any more. Never before the run: until
 * then other plans may use the arena. Lives in `a`. */
int *plan_posts(struct arena *a, const struct plan *p, int device);

#endif

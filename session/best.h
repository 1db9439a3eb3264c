/* SPDX-License-Identifier: Apache-2.0 */
/* The metric that a training watches: its best value so far, and how long ago that was */
#ifndef DGC_SESSION_BEST_H
#define DGC_SESSION_BEST_H

#include "session/options.h"
#include "session/session.h"
#include "session/state/best.h"

/* Whether the training evaluates as it goes. */
bool session_evaluates_often(const struct dgc_session *s);
/* Finds the metric of the option metric-to-watch among those of evaluation; its default is the first one, which is a
 * loss. What the session knows of another metric is forgotten. */
enum dgc_status session_watch(struct dgc_session *s);
/* What an evaluation behind the present step gave, by the model's measures. True: it is the best one so far. */
bool session_watched(struct dgc_session *s, const struct dgc_metric *metrics);
/* Whether the present step, which was not evaluated yet, is one to evaluate behind. */
bool session_evaluation_due(const struct dgc_session *s);
/* Of one that is not: whether it is the last one, and the best is to be kept. It is evaluated, too, for the file and
 * for whoever asks what was best; what goes on knows nothing of it, as a training that has no end there. */
bool session_keeps_last(const struct dgc_session *s, const struct goal *goal);
void session_leave_last(struct dgc_session *s, const struct best_so_far *before);
/* Whether the option patience is used up. */
bool session_impatient(const struct dgc_session *s);
/* That no evaluation gave a number, so that nothing was best, and nothing kept. */
void session_say_unmeasured(struct dgc_session *s);
/* Says so. */
void session_say_impatient(struct dgc_session *s);

#endif

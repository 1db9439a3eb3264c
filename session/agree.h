/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of a cluster have to have in common before they run together */
#ifndef DGC_SESSION_AGREE_H
#define DGC_SESSION_AGREE_H

#include "ir/plan/plan.h"
#include "session/session.h"

/* Each is compared in all processes; one process alone agrees. An error names the first process that differs from the
 * first one, and both values; only the first process reports it. All processes call these in the same order. */

/* dgc itself, as soon as they can talk. */
enum dgc_status agree_on_build(struct dgc_session *s);
/* A graph and its plan: if they differ, the error shows the first line that does. If the plan is a part, the graph is
 * what all parts come from; then also each message that a process sends is one that another receives, or the error
 * shows the first that is not. */
enum dgc_status agree_on_plan(struct dgc_session *s, const struct graph *g, const struct plan *p);
/* Which GPUs are simulated is known in the processes that have them; all are told. */
enum dgc_status tell_simulated(struct dgc_session *s);

/* Where a checkpoint stands that is about to be restored. */
enum dgc_status agree_on_checkpoint(struct dgc_session *s, const struct position *p);

struct dataset;
/* What is trained on, from where, and until when; `tested`: there is data to evaluate on. */
enum dgc_status agree_on_training(struct dgc_session *s, const struct dataset *ds, bool tested);
/* What is evaluated on. */
enum dgc_status agree_on_evaluation(struct dgc_session *s, const struct dataset *ds);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How long a step of a plan takes, by what is known of the machine: the plan is walked through in its own order, with a
 * clock for each device. A step takes its operations or its bytes of memory, whichever is longer; a message its delay
 * and its bytes over the link, and a task sends one message after the other, and receives one after the other, beside
 * what it computes. What steps cost besides, and what tasks of one host take from each other, is not in it. */
#ifndef DGC_IR_PLAN_PREDICT_H
#define DGC_IR_PLAN_PREDICT_H

#include "ir/plan/plan.h"
#include "ir/speeds.h"

/* Seconds of a step. */
double plan_predict(struct arena *a, const struct plan *p, const struct speeds *m);

/* Seconds that the steps of a device take by themselves. */
double step_predict(const struct step *s, const struct speeds *m);

#endif

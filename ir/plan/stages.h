/* SPDX-License-Identifier: Apache-2.0 */
/* A plan for processes in stages, for a process that does them at different times, with other work between them: so a
 * parameter server does what one worker needs. */
#ifndef DGC_IR_PLAN_STAGES_H
#define DGC_IR_PLAN_STAGES_H

#include "ir/plan/plan.h"

/* The plans share what the whole one has, and have steps for the devices of the process alone. */
struct plan_stages {
  struct plan first;  /* what is sent to the peer, as far as nothing has to be received for it */
  struct plan *asked; /* for each other thing that is sent to it: can run when what it receives is there */
  int nasked;
  struct plan last; /* all but what is sent to the peer */
  /* Why there are none: it is sent, and depends on other processes than the peer, on another device, or on a variable
   * that the step has changed before. */
  const struct node *wrong;
  int device; /* whose that is */
};

/* The stages of what `process` does of a plan for which plan_verify holds. Steps keep their numbers: those that are
 * left out are signals that nobody waits for. A step that only computes may be in several. In `a`. False: see
 * `wrong`. */
bool plan_stages(struct arena *a, const struct plan *p, int process, int peer, struct plan_stages *out);

#endif

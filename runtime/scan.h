/* SPDX-License-Identifier: Apache-2.0 */
/* A LOOP step: its steps again and again, on the thread of the device; others help with what is in pieces. */
#ifndef DGC_RUNTIME_SCAN_H
#define DGC_RUNTIME_SCAN_H

#include "runtime/backend.h"

/* `commands` are those of the body's steps, in order, each a KERNEL, a CALL or a COPY with room for its addresses;
 * `entered` says by command whose `enter` is called when the loop begins, or NULL. `copies`, of the kinds of commands,
 * copy one element of a result each: what is carried, then what is stacked. `constants` of the body are where the plan
 * has them; NULL: on the host. Where `*took` is not NULL, what a command takes is added there by its number; `board` is
 * that of the device. All of it in `a`. */
const void *loop_make(struct arena *a, const struct step *s, int device, const struct command *commands,
                      const struct pieces *const *entered, const struct command *copies, void *constants,
                      const struct board *board, struct step_time *const *took);
/* A call_fn, the state being what loop_make gave. */
void loop_run(void *const *args, const void *state);

#endif

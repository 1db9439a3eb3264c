/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints written by a thread of their own, so that training goes on meanwhile: one at a time, in the order they
 * come in. What is still waiting when the next one of the same file comes is not written: that one replaces it. */
#ifndef DGC_RUNTIME_CHECKPOINT_WRITER_H
#define DGC_RUNTIME_CHECKPOINT_WRITER_H

#include "runtime/checkpoint.h"

struct checkpoint_writer;

/* It needs no memory of an arena. NULL if there is none. */
struct checkpoint_writer *checkpoint_writer_create(void);
/* An empty arena for a checkpoint, with the memory of one that is written, if there is one; and back where it is not
 * put. */
struct arena *checkpoint_writer_arena(struct checkpoint_writer *w);
void checkpoint_writer_give(struct checkpoint_writer *w, struct arena *a);
/* Takes `owner`, in which the checkpoint and the path lie, and everything of it is to be written to `path`. Where no
 * thread can be started it is written at once. */
void checkpoint_writer_put(struct checkpoint_writer *w, struct arena *owner, const char *path,
                           const struct checkpoint *c);
/* Whether a checkpoint could not be written. Nothing more is written then until that is reported. */
bool checkpoint_writer_failed(struct checkpoint_writer *w);
/* Waits until all is written. False, with the error in `d` if that is not NULL, if one could not be: told once. */
bool checkpoint_writer_finish(struct checkpoint_writer *w, struct diags *d);
/* Waits as well. NULL is allowed. */
void checkpoint_writer_destroy(struct checkpoint_writer *w);

#endif

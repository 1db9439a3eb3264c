/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of a session: its variables and where its training stands */
#ifndef DGC_SESSION_CHECKPOINT_H
#define DGC_SESSION_CHECKPOINT_H

#include "session/session.h"

#include "runtime/checkpoint.h"

/* The text `format` of our own; of other programs a text means what it likes. */
#define CHECKPOINT_FORMAT "dgc-1"

/* To save is two parts: a copy of all, which a thread of the first process begins to write; and waiting for what is
 * written yet, which fails if that did. All processes have to call them. `finite`: an error, and nothing is written, if
 * a variable that is trained is not. */
enum dgc_status session_save_begin(struct dgc_session *s, const char *path, bool finite);
enum dgc_status session_save_end(struct dgc_session *s, const char *path);
/* Whether something could not be written, which session_save_end will report. */
bool session_save_failed(const struct dgc_session *s);
/* Waits for what this process writes yet; where it fails, that is reported to `d` if it is not NULL. */
bool session_save_wait(struct dgc_session *s, const char *path, struct diags *d);
/* Restores the file unless it has this checksum (NULL: none), which becomes that of the file, in the call's arena. */
enum dgc_status session_restore_other(struct dgc_session *s, const char *path, const char **checksum,
                                      bool *other);
/* Whether this file has the best of the training that goes on: of what it did before it, or behind the checkpoint that
 * it goes on from, and will do again. */
bool session_is_own_best(struct dgc_session *s, const char *path);
/* What is told of a file first: its texts, a line each, or the beginning of an object that ends with the list of its
 * tensors. */
void checkpoint_print_texts(struct str *out, bool json, const struct checkpoint *c);
/* Before the first step of a training: an error if the option checkpoint or keep-best cannot be written, or would
 * replace a file that the session has neither read nor written, nor the training that it goes on with. */
enum dgc_status session_may_save(struct dgc_session *s);
/* Once the processes have met: from here to session_release no other training writes these files; an error if one does
 * already, or has since session_may_save. All processes have to call it. */
enum dgc_status session_claim(struct dgc_session *s);
void session_release(struct dgc_session *s);
/* Before a training goes on, once: what starts anew, and what the file has that will not be saved again. */
void session_say_left_out(struct dgc_session *s);

#endif

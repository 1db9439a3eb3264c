/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabularies of inputs that are words: a training numbers them, and its checkpoints keep them */
#ifndef DGC_SESSION_VOCABULARIES_H
#define DGC_SESSION_VOCABULARIES_H

#include "runtime/checkpoint.h"
#include "session/session.h"

struct vocabulary;

/* What the files of an input are read with. A training that is at its beginning makes a new one; else it is that of the
 * checkpoint, or of the training before. NULL: there is none. */
struct vocabulary *words_of(struct dgc_session *s, const char *input, bool train);
/* Says how many rows of the columns that were opened have words that the vocabulary has not. */
void words_say_unknown(struct dgc_session *s);
/* Whether the paths of an input read words, "x.csv:city:category", or labels, "photos/:label". */
bool words_are_read(struct arena *a, const char *path, const char *const *more, int nmore);
/* The texts of a checkpoint, "words.city" with a list in JSON; at most words_count of them. In the arena. */
int words_count(const struct dgc_session *s);
void words_save(const struct dgc_session *s, struct arena *a, struct checkpoint_text *texts, int *n);
/* Takes over what a checkpoint has, in place of all there is; or only checks it. False: one of its lists is none. */
bool words_restore(struct dgc_session *s, const struct checkpoint *c, bool check);

#endif

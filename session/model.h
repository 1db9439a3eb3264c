/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a session: its source, and the entries that it has */
#ifndef DGC_SESSION_MODEL_H
#define DGC_SESSION_MODEL_H

#include "session/session.h"

#include "frontend/frontend.h"

enum entry_kind { ENTRY_INIT, ENTRY_TRAIN, ENTRY_EVAL, ENTRY_PREDICT, ENTRY_METRICS, ENTRY_COUNT };
extern const char *const entry_names[ENTRY_COUNT];

/* Compiles the session's first and only source; NULL: it could not be read. */
enum dgc_status session_load(struct dgc_session *s, const struct source *source);
/* The source again, with the options as they are now. */
enum dgc_status session_compile(struct dgc_session *s);
/* Where the files may lie that a model names: its own folder if it came from a file, and what the options give. Lives
 * as long as the call. */
const struct file_roots *session_roots(struct dgc_session *s);

/* The entry's source graph; NULL if the model has none. */
const struct graph *entry_source(const struct dgc_session *s, enum entry_kind kind);
bool entry_there(const struct dgc_session *s, enum entry_kind kind);
/* The variable of this name, as ENTRY_INIT has it; NULL: there is none. */
const struct node *entry_variable(const struct dgc_session *s, const char *name);
/* An error if the model has no such entry. */
enum dgc_status session_need(struct dgc_session *s, enum entry_kind kind);
/* NULL stands for the first worth a look. */
enum dgc_status entry_find(struct dgc_session *s, const char *name, enum entry_kind *out);
/* An error that names what there is if the model has no such input. */
enum dgc_status session_check_input(struct dgc_session *s, const char *name);
/* A graph that holds all variables of the model. */
const struct graph *session_all_variables(const struct dgc_session *s);

#endif

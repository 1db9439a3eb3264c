/* Checkpoints of a session: its variables and where its training stands */
#ifndef DGC_SESSION_CHECKPOINT_H
#define DGC_SESSION_CHECKPOINT_H

#include "session/session.h"

/* `finite`: an error, and nothing is written, if a variable that is trained is not. */
enum dgc_status session_save(struct dgc_session *s, const char *path, bool finite);
/* Before the first step of a training: an error if the option checkpoint cannot be written, or would replace a file
 * that the session has neither read nor written. */
enum dgc_status session_may_save(struct dgc_session *s);

#endif

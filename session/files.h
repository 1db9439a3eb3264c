/* SPDX-License-Identifier: Apache-2.0 */
/* Every file that a session reads or writes, so that no two of them are one. */
#ifndef DGC_SESSION_FILES_H
#define DGC_SESSION_FILES_H

#include "session/session.h"

/* DGC_USAGE, naming both, where a file that is written is also read, or written for something else. To be called before
 * anything is written. `trains`: the option checkpoint is written, not read. */
enum dgc_status session_files_apart(struct dgc_session *s, bool trains);
/* The same of one file more, which is written under this path; `what` is how messages call it. */
enum dgc_status session_may_write(struct dgc_session *s, const char *what, const char *path);

#endif

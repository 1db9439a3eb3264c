/* SPDX-License-Identifier: Apache-2.0 */
/* Which process opens which files, where workers have files of their own */
#ifndef DGC_SESSION_OWN_FILES_H
#define DGC_SESSION_OWN_FILES_H

#include "runtime/data/data.h"
#include "session/session.h"

/* Where tasks are processes and training deals files to workers, each opens its own ones and tells the others what is
 * in them: the shapes of the specifications' other files are filled in. Nothing is changed where all files have to be
 * opened. All processes have to call it. */
enum dgc_status session_own_files(struct dgc_session *s, struct data_spec *specs, int count);

#endif

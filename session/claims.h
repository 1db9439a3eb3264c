/* SPDX-License-Identifier: Apache-2.0 */
/* Whose files a training writes */
#ifndef DGC_SESSION_CLAIMS_H
#define DGC_SESSION_CLAIMS_H

#include "runtime/data/claim.h"
#include "session/session.h"

/* An error if the file is there and the session has neither read nor written it, unless `own` (NULL is allowed) knows
 * it all the same or the option overwrite is set; or if nothing can be written there. `path` NULL: none. */
enum dgc_status session_may_replace(struct dgc_session *s, const char *path,
                                    bool (*own)(struct dgc_session *s, const char *path));
/* An error if another program has written the file since the session has read or written it. */
enum dgc_status session_is_as_read(struct dgc_session *s, const char *path);
/* From here to session_claim_end no other session of any process writes the file; an error if one does already. `path`
 * NULL: none. By the first process alone. */
enum dgc_status session_claim_file(struct dgc_session *s, const char *path, struct file_claim *out);
void session_claim_end(void *claim);
/* The session has read or written the file, which had this stamp (claim_stamp) before. */
void session_saved(struct dgc_session *s, const char *path, uint64_t stamp);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Whose files a training writes: nothing is replaced that the session has neither read nor written, nor what another
 * program writes or has written since. */
#include "session/claims.h"

#include "session/state/checkpoints.h"

#include "runtime/data/atomic.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_own(const struct dgc_session *s, const char *path) {
  char real[PATH_MAX];
  if (!realpath(path, real)) return false;
  for (int i = 0; i < s->saving->files.count; i++)
    if (strcmp(s->saving->files.items[i], real) == 0) return true;
  return false;
}

void session_saved(struct dgc_session *s, const char *path, uint64_t stamp) {
  char real[PATH_MAX];
  if (!realpath(path, real)) return;
  if (!is_own(s, path)) list_append(s->arena, &s->saving->files, real);
  if (!s->saving->last || strcmp(s->saving->last, real) != 0) s->saving->last = arena_strdup(s->arena, real);
  s->saving->stamp = stamp;
}

enum dgc_status session_is_as_read(struct dgc_session *s, const char *path) {
  char real[PATH_MAX];
  const struct saving *own = s->saving;
  if (!path || !own->last || s->options.overwrite || !realpath(path, real) || strcmp(real, own->last) != 0 ||
      claim_stamp(real) == own->stamp)
    return DGC_OK;
  session_fail(s, DGC_USAGE, "%s has been written by another program since this training read it", path);
  diag_help(&s->diags, LOC_NONE, "begin again, to go on from what it is now");
  return DGC_USAGE;
}

enum dgc_status session_may_replace(struct dgc_session *s, const char *path,
                                    bool (*own)(struct dgc_session *s, const char *path)) {
  struct stat st;
  if (!path || !session_is_first(s)) return DGC_OK;
  bool holds = stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
  if (holds && !s->options.overwrite && !is_own(s, path) && !(own && own(s, path))) {
    session_fail(s, DGC_USAGE, "%s is there already, and this training would replace it", path);
    diag_help(&s->diags, LOC_NONE, "--resume goes on from it, --overwrite begins anew");
    return DGC_USAGE;
  }
  return atomic_try(s->call, path, &s->diags) ? DGC_OK : DGC_RUNTIME;
}

enum dgc_status session_claim_file(struct dgc_session *s, const char *path, struct file_claim *out) {
  long holder = 0;
  if (!path || claim_file(s->call, path, out, &holder)) return DGC_OK;
  session_fail(s, DGC_USAGE, "%s is being written by another training: %s %ld", path,
               holder == (long)getpid() ? "of a session of this process," : "process", holder);
  diag_help(&s->diags, LOC_NONE, "name another file for this one, or wait until that one has ended");
  return DGC_USAGE;
}

void session_claim_end(void *claim) { claim_end(claim); }

/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for what a test writes, which is gone with it, whatever assertion fails. */
#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char scratch_path[200]; /* in TMPDIR, or /tmp; "": not made yet */
static pid_t scratch_owner;

static inline int scratch_remove_one(const char *path, const struct stat *s, int kind, struct FTW *at) {
  (void)s, (void)kind, (void)at;
  return remove(path);
}

static inline void scratch_remove(void) {
  if (getpid() == scratch_owner) nftw(scratch_path, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Makes it, the first time; false: it cannot be made, and the next call tries again. Not for several threads. */
static inline bool scratch_make(void) {
  const char *top = getenv("TMPDIR");
  if (*scratch_path) return true;
  int length = snprintf(scratch_path, sizeof scratch_path, "%s/dgc-test-XXXXXX", top && *top ? top : "/tmp");
  scratch_owner = getpid();
  if (length < (int)sizeof scratch_path && mkdtemp(scratch_path) && atexit(scratch_remove) == 0) return true;
  *scratch_path = 0;
  return false;
}

/* And goes there. */
static inline bool scratch_enter(void) { return scratch_make() && chdir(scratch_path) == 0; }

#endif

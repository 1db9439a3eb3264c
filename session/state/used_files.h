/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the caller uses */
#ifndef DGC_SESSION_STATE_USED_FILES_H
#define DGC_SESSION_STATE_USED_FILES_H

#include "include/dgc.h"

/* A file that the caller uses, by dgc_uses. */
struct used_file {
  const char *what, *path;
  enum dgc_file_use use;
};

struct used_files {
  struct used_file *items;
  int count;
};

#endif

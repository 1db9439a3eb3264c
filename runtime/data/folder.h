/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a folder. */
#ifndef DGC_RUNTIME_DATA_FOLDER_H
#define DGC_RUNTIME_DATA_FOLDER_H

#include "base/diag.h"
#include "base/file.h"

struct folder {
  const char **files;   /* paths behind the folder's own, in the order of their bytes */
  const char **folders; /* the names of those in it, likewise */
  int64_t nfiles, nfolders;
  int64_t others;    /* files of other names */
  const char *other; /* one of them */
};

/* Lists all files below a folder whose names end in one of the suffixes, in any case; what begins with a dot is left
 * out. A link to a file is a file; one to a folder, or folders more than 32 deep, are an error. `roots`: where the
 * folder must lie. False: `*cause` says why, `*where` of which path. */
bool folder_list(struct arena *a, const struct file_roots *roots, const char *path,
                 const char *const *suffixes, struct folder *out, const char **where, const char **cause);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A file that appears whole or not at all: written without a name, or under another one, in the same folder,
 * flushed to the disk, then renamed. Who is killed before that may leave one with the other name: the next one that
 * writes the same file removes it. What is no regular file (a pipe, a device) is written directly. */
#ifndef DGC_RUNTIME_DATA_ATOMIC_H
#define DGC_RUNTIME_DATA_ATOMIC_H

#include "base/diag.h"

struct atomic_file {
  int fd;
  const char *path;          /* as the user wrote it */
  const char *target, *temp; /* temp NULL: written directly */
  char *buffer;
  size_t fill;
  struct arena *arena;
  bool unnamed; /* temp is the name it will get, but has not yet */
  bool failed;  /* reported already */
};

/* "-" is standard output. */
bool atomic_open(struct atomic_file *f, struct arena *a, const char *path, struct diags *d);
/* Whether it could be opened to be written now. Nothing is changed or left behind; a pipe or device is not opened. */
bool atomic_try(struct arena *a, const char *path, struct diags *d);
bool atomic_write(struct atomic_file *f, const void *data, size_t len, struct diags *d);
/* Overwrites bytes written before; not for a file that is written directly. */
bool atomic_patch(struct atomic_file *f, int64_t offset, const void *data, size_t len, struct diags *d);
/* Ends the file either way: false, and nothing changed on disk, if it could not be completed. */
bool atomic_commit(struct atomic_file *f, struct diags *d);
void atomic_discard(struct atomic_file *f);

#endif

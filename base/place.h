/* SPDX-License-Identifier: Apache-2.0 */
/* Which file a path leads to, however it is spelled, and whether it is there or not. */
#ifndef DGC_BASE_PLACE_H
#define DGC_BASE_PLACE_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct file_place {
  bool there, regular, folder;
  uint64_t device, inode; /* of the file; where it is not there, of the last folder on its way that is, */
  const char *rest;       /* and the way from that: "new/z.st"; else "" */
  const char *real;       /* the whole path, with no link in it */
};

/* Links are followed, those too that lead to what is not there yet. False: it leads nowhere. */
bool place_of(struct arena *a, const char *path, struct file_place *out);
/* Whether one file would be written and read through both. */
bool place_same(const struct file_place *a, const struct file_place *b);
/* The same of two paths. */
bool place_one(struct arena *a, const char *x, const char *y);
/* Whether `file` would lie in the folder, or below. */
bool place_below(const struct file_place *folder, const struct file_place *file);

#endif

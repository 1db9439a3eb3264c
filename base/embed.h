/* SPDX-License-Identifier: Apache-2.0 */
/* Text files compiled into the binary by tools/embed.py. A table ends with an entry whose name is NULL. */
#ifndef DGC_BASE_EMBED_H
#define DGC_BASE_EMBED_H

#include <stddef.h>

struct embedded {
  const char *name; /* the file's name without its folder */
  const char *text; /* NUL-terminated */
  size_t len;
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Object code on disk: $XDG_CACHE_HOME/dgc, or ~/.cache/dgc; DGC_CACHE=off does without. Its files take at most
 * $DGC_CACHE_BYTES, or CACHE_BYTES.
 *
 * A file is named after a hash of its key and holds the whole key, so that two keys never share code. Only files and
 * folders that belong to the user and that nobody else may write are trusted. Nothing fails here: without a usable
 * file there is no hit, without a usable folder there is no cache. */
#ifndef DGC_RUNTIME_CACHE_H
#define DGC_RUNTIME_CACHE_H

#include "base/str.h"

/* The folder, made if need be, or NULL. */
const char *cache_folder(struct arena *a);
/* What the file is of the library that has this address: a part of the key of what it makes. */
void cache_put_library(struct str *key, const void *address);
/* The code stored under `key`, in `a` and aligned to 16 bytes, or NULL. */
const char *cache_read(struct arena *a, const char *folder, const struct str *key, size_t *size);
void cache_write(const char *folder, const struct str *key, const char *code, size_t size);

#define CACHE_BYTES (INT64_C(1) << 30)
/* For who has written: once an hour, if the files take more, removes those that were not used for longest. */
void cache_trim(const char *folder);

#endif

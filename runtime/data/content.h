/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a file. What is small, compressed or made lies in memory; of a large file only what is asked for is
 * read, and its descriptor stays open. Nothing is mapped: who reads a mapping of a file that has become shorter is
 * killed. */
#ifndef DGC_RUNTIME_DATA_CONTENT_H
#define DGC_RUNTIME_DATA_CONTENT_H

#include "base/diag.h"

struct content {
  const uint8_t *bytes; /* NULL: empty, or in the file */
  int64_t len;
  void *map; /* memory of its own; NULL if there is none */
  size_t map_len;
  bool in_file;
  int fd; /* of in_file */
};

/* What the first `len` bytes of content, decompressed, say of its length: that it is so many bytes (> 0), that -n bytes
 * are needed to tell (< 0), nothing (0), or that there is something wrong with them (CONTENT_WRONG). */
typedef int64_t content_size_fn(const char *path, const uint8_t *head, int64_t len);
#define CONTENT_WRONG INT64_MIN

/* The whole file `path`, which stays where it is; `roots`: where it must lie, see file_open_within. An error if it is
 * empty. */
bool content_open_file(struct content *b, const struct file_roots *roots, const char *path, struct loc loc,
                       struct diags *d);
/* `len` zeroed writable bytes. `path`: whose content they will hold. */
bool content_alloc(struct content *b, int64_t len, const char *path, struct loc loc, struct diags *d);
/* Reads what is in the file into memory. */
bool content_load(struct content *b, const char *path, struct loc loc, struct diags *d);
/* Copies bytes out. False: errno says why; 0 stands for a file that has become shorter. */
bool content_read(const struct content *b, int64_t offset, void *out, int64_t len);
/* "cannot read PATH" for this errno; gives false back. */
bool content_unread(const char *path, int error, struct loc loc, struct diags *d);
const char *content_why(int error);
void content_close(struct content *b);

#endif

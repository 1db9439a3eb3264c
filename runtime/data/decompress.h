/* SPDX-License-Identifier: Apache-2.0 */
/* Files that may be compressed, and compressed parts of files, as bytes. */
#ifndef DGC_RUNTIME_DATA_DECOMPRESS_H
#define DGC_RUNTIME_DATA_DECOMPRESS_H

#include "runtime/data/inflate.h"

/* Opens the file `path`; `roots`: where it must lie, see file_open_within. It is read into memory if it is no longer
 * than `*budget`, which shrinks by its length; NULL is no limit. What gzip compressed is inflated, and no further than
 * `size` says. */
bool content_open(struct content *b, const struct file_roots *roots, const char *path, content_size_fn *size,
                  int64_t *budget, struct loc loc, struct diags *d);
/* The same of content that is open. */
bool content_unpack(struct content *b, const char *path, content_size_fn *size, int64_t *budget,
                    struct loc loc, struct diags *d);
/* Inflates a raw deflate stream that must give `len` bytes with this CRC-32. */
bool content_inflate(struct content *b, const struct content *compressed, int64_t offset,
                     int64_t compressed_len, int64_t len, uint32_t crc, const char *path, struct loc loc,
                     struct diags *d);
/* Whether these bytes have this CRC-32; false, too, if they cannot be read. */
bool content_crc_ok(const struct content *b, int64_t offset, int64_t len, uint32_t crc);

#endif

/* Files that may be packed, and packed parts of files, as bytes. */
#ifndef DGC_RUNTIME_DATA_UNPACK_H
#define DGC_RUNTIME_DATA_UNPACK_H

#include "runtime/data/inflate.h"

/* Opens the file `path`; `roots`: where it must lie, see file_open_within. It is read into memory if it is no longer
 * than `*room`, which shrinks by its length; NULL is room for any. What gzip packed is inflated, and no further than
 * `size` says. */
bool blob_open(struct blob *b, const struct file_roots *roots, const char *path, blob_size_fn *size,
               int64_t *room, struct loc loc, struct diags *d);
/* Inflates a raw deflate stream that must give `len` bytes with this CRC-32. */
bool blob_inflate(struct blob *b, const struct blob *packed, int64_t offset, int64_t packed_len, int64_t len,
                  uint32_t crc, const char *path, struct loc loc, struct diags *d);
/* Whether these bytes have this CRC-32; false, too, if they cannot be read. */
bool blob_crc_ok(const struct blob *b, int64_t offset, int64_t len, uint32_t crc);

#endif

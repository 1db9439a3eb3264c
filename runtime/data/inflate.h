/* SPDX-License-Identifier: Apache-2.0 */
/* Deflate, in gzip files and in members of .npz archives. */
#ifndef DGC_RUNTIME_DATA_INFLATE_H
#define DGC_RUNTIME_DATA_INFLATE_H

#include "runtime/data/content.h"

/* Compressed content may grow to this. */
#define INFLATE_LIMIT (INT64_C(1) << 34)

/* `len` compressed bytes of `in` from `offset` on: a gzip file if there is a `size` function, else a raw stream. */
struct deflated {
  const struct content *in;
  int64_t offset, len;
  const char *path;
  content_size_fn *size;
  struct loc loc;
};

/* Inflates into `b` as a stream: at first no more than a header, then what that says, or until the end, but never more
 * than `limit` bytes. False after an error: `b` is empty then. */
bool inflate_content(struct content *b, const struct deflated *from, int64_t limit, struct diags *d);
/* The CRC-32 of more bytes; it begins with 0. */
uint32_t crc_add(uint32_t crc, const uint8_t *bytes, int64_t len);

#endif

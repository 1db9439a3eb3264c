/* Deflate, in gzip files and in members of .npz archives. */
#ifndef DGC_RUNTIME_DATA_INFLATE_H
#define DGC_RUNTIME_DATA_INFLATE_H

#include "runtime/data/blob.h"

enum inflate_format { INFLATE_GZIP, INFLATE_RAW };

/* Inflates `in` into `b`, whose memory has `first` bytes to begin with and grows to `limit` at most. `path` is named
 * in errors. False after an error: `b` is empty then. */
bool inflate_blob(struct blob *b, const struct blob *in, enum inflate_format format, int64_t first,
                  int64_t limit, const char *path, struct loc loc, struct diags *d);

#endif

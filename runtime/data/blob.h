/* Bytes of a file, mapped; or of its inflated content, in memory of its own. */
#ifndef DGC_RUNTIME_DATA_BLOB_H
#define DGC_RUNTIME_DATA_BLOB_H

#include "base/diag.h"

/* Packed content may grow to this. */
#define INFLATE_LIMIT (INT64_C(1) << 34)

struct blob {
  const uint8_t *bytes;
  int64_t len;
  void *map; /* NULL when empty */
  size_t map_len;
};

/* Maps the file `path`; what gzip packed is inflated. */
bool blob_open(struct blob *b, const char *path, struct loc loc, struct diags *d);
/* `len` zeroed writable bytes. `path`: whose content they will hold. */
bool blob_alloc(struct blob *b, int64_t len, const char *path, struct loc loc, struct diags *d);
/* Inflates a raw deflate stream that must give `len` bytes with this CRC-32. */
bool blob_inflate(struct blob *b, const uint8_t *packed, int64_t packed_len, int64_t len, uint32_t crc,
                  const char *path, struct loc loc, struct diags *d);
bool blob_crc_ok(const uint8_t *bytes, int64_t len, uint32_t crc);
void blob_close(struct blob *b);

#endif

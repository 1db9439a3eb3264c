/* Where zlib is missing: what is packed is refused, and checksums are made bit by bit. */
#include "runtime/data/inflate.h"

bool inflate_blob(struct blob *b, const struct blob *in, enum inflate_format format, int64_t first,
                  int64_t limit, const char *path, struct loc loc, struct diags *d) {
  (void)in, (void)first, (void)limit;
  *b = (struct blob){0};
  diag_error(d, loc, "%s is packed, and this dgc was built without zlib", path);
  diag_help(d, loc,
            format == INFLATE_GZIP
                ? "unpack it with gunzip, or build dgc where zlib's header is installed"
                : "write it with numpy.savez, or build dgc where zlib's header is installed");
  return false;
}

/* CRC-32 as in ISO 3309: the reflected polynomial 0xedb88320. */
bool blob_crc_ok(const uint8_t *bytes, int64_t len, uint32_t crc) {
  uint32_t rest = 0xffffffff;
  for (int64_t i = 0; i < len; i++) {
    rest ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) rest = (rest >> 1) ^ (rest & 1 ? 0xedb88320 : 0);
  }
  return ~rest == crc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Where zlib is missing: what is compressed is refused, and checksums are made bit by bit. */
#include "runtime/data/inflate.h"

bool inflate_content(struct content *b, const struct deflated *from, int64_t limit, struct diags *d) {
  (void)limit;
  *b = (struct content){0};
  diag_error(d, from->loc, "%s is compressed, and this dgc was built without zlib", from->path);
  diag_help(d, from->loc,
            from->size ? "decompress it with gunzip, or build dgc where zlib's header is installed"
                       : "write it with numpy.savez, or build dgc where zlib's header is installed");
  return false;
}

/* CRC-32 as in ISO 3309: the reflected polynomial 0xedb88320. */
uint32_t crc_add(uint32_t crc, const uint8_t *bytes, int64_t len) {
  uint32_t rest = ~crc;
  for (int64_t i = 0; i < len; i++) {
    rest ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) rest = (rest >> 1) ^ (rest & 1 ? 0xedb88320 : 0);
  }
  return ~rest;
}

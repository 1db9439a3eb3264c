/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files that gzip may have compressed, and inflating members of a zip archive. */
#include "runtime/data/decompress.h"

#include "runtime/data/inflate.h"

#include <errno.h>

enum { WINDOW = 1 << 14 };

/* Deflate compresses at most 1032 bytes into one, plus a constant. */
static int64_t inflate_bound(int64_t compressed) {
  int64_t bound;
  return __builtin_mul_overflow(compressed, 1032, &bound) || bound > INFLATE_LIMIT ? INFLATE_LIMIT
                                                                                   : bound + 1032;
}

bool content_open(struct content *b, const struct file_roots *roots, const char *path, content_size_fn *size,
                  int64_t *budget, struct loc loc, struct diags *d) {
  return content_open_file(b, roots, path, loc, d) && content_unpack(b, path, size, budget, loc, d);
}

bool content_unpack(struct content *b, const char *path, content_size_fn *size, int64_t *budget,
                    struct loc loc, struct diags *d) {
  uint8_t magic[2];
  bool ok = true, compressed = false;
  if (b->len >= 2) {
    ok = content_read(b, 0, magic, 2) || content_unread(path, errno, loc, d);
    compressed = ok && magic[0] == 0x1f && magic[1] == 0x8b;
  }
  if (compressed) {
    struct content in = *b;
    struct deflated from = {.in = &in, .len = in.len, .path = path, .size = size, .loc = loc};
    ok = inflate_content(b, &from, inflate_bound(in.len), d);
    content_close(&in);
  } else if (ok && (!budget || b->len <= *budget)) {
    if (budget) *budget -= b->len;
    ok = content_load(b, path, loc, d);
  }
  if (!ok) content_close(b);
  return ok;
}

bool content_inflate(struct content *b, const struct content *compressed, int64_t offset,
                     int64_t compressed_len, int64_t len, uint32_t crc, const char *path, struct loc loc,
                     struct diags *d) {
  *b = (struct content){0};
  if (len <= 0 || len > inflate_bound(compressed_len)) {
    diag_error(d, loc, "%s: %lld compressed bytes cannot hold %lld; the file is damaged", path,
               (long long)compressed_len, (long long)len);
    return false;
  }
  struct deflated from = {
      .in = compressed, .offset = offset, .len = compressed_len, .path = path, .loc = loc};
  if (!inflate_content(b, &from, len, d)) return false;
  if (b->len == len && content_crc_ok(b, 0, len, crc)) return true;
  diag_error(d, loc, "%s: the decompressed bytes do not match their checksum; the file is damaged", path);
  content_close(b);
  return false;
}

bool content_crc_ok(const struct content *b, int64_t offset, int64_t len, uint32_t crc) {
  if (!b->in_file) return crc_add(0, b->bytes + offset, len) == crc;
  uint8_t window[WINDOW];
  uint32_t sum = 0;
  for (int64_t at = 0, n; at < len; at += n) {
    n = len - at < WINDOW ? len - at : WINDOW;
    if (!content_read(b, offset + at, window, n)) return false;
    sum = crc_add(sum, window, n);
  }
  return sum == crc;
}

#include "runtime/data/unpack.h"

#include "runtime/data/inflate.h"

#include <errno.h>

enum { WINDOW = 1 << 16 };

/* Deflate packs at most 1032 bytes into one, plus a constant. */
static int64_t inflate_bound(int64_t packed) {
  int64_t bound;
  return __builtin_mul_overflow(packed, 1032, &bound) || bound > INFLATE_LIMIT ? INFLATE_LIMIT : bound + 1032;
}

bool blob_open(struct blob *b, const struct file_roots *roots, const char *path, blob_size_fn *size,
               int64_t *room, struct loc loc, struct diags *d) {
  uint8_t magic[2];
  if (!blob_open_file(b, roots, path, loc, d)) return false;
  bool ok = true, packed = false;
  if (b->len >= 2) {
    ok = blob_read(b, 0, magic, 2) || blob_unread(path, errno, loc, d);
    packed = ok && magic[0] == 0x1f && magic[1] == 0x8b;
  }
  if (packed) {
    struct blob in = *b;
    struct deflated from = {.in = &in, .len = in.len, .path = path, .size = size, .loc = loc};
    ok = inflate_blob(b, &from, inflate_bound(in.len), d);
    blob_close(&in);
  } else if (ok && (!room || b->len <= *room)) {
    if (room) *room -= b->len;
    ok = blob_load(b, path, loc, d);
  }
  if (!ok) blob_close(b);
  return ok;
}

bool blob_inflate(struct blob *b, const struct blob *packed, int64_t offset, int64_t packed_len, int64_t len,
                  uint32_t crc, const char *path, struct loc loc, struct diags *d) {
  *b = (struct blob){0};
  if (len <= 0 || len > inflate_bound(packed_len)) {
    diag_error(d, loc, "%s: %lld packed bytes cannot hold %lld; the file is damaged", path,
               (long long)packed_len, (long long)len);
    return false;
  }
  struct deflated from = {.in = packed, .offset = offset, .len = packed_len, .path = path, .loc = loc};
  if (!inflate_blob(b, &from, len, d)) return false;
  if (b->len == len && blob_crc_ok(b, 0, len, crc)) return true;
  diag_error(d, loc, "%s: the unpacked bytes do not match their checksum; the file is damaged", path);
  blob_close(b);
  return false;
}

bool blob_crc_ok(const struct blob *b, int64_t offset, int64_t len, uint32_t crc) {
  if (!b->in_file) return crc_add(0, b->bytes + offset, len) == crc;
  uint8_t window[WINDOW];
  uint32_t sum = 0;
  for (int64_t at = 0, n; at < len; at += n) {
    n = len - at < WINDOW ? len - at : WINDOW;
    if (!blob_read(b, offset + at, window, n)) return false;
    sum = crc_add(sum, window, n);
  }
  return sum == crc;
}

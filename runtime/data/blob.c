#include "runtime/data/inflate.h"

#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WINDOW = 1 << 16 };

/* Deflate packs at most 1032 bytes into one, plus a constant. */
static int64_t inflate_bound(int64_t packed) {
  int64_t bound;
  return __builtin_mul_overflow(packed, 1032, &bound) || bound > INFLATE_LIMIT ? INFLATE_LIMIT : bound + 1032;
}

const char *blob_why(int error) {
  return error ? strerror(error) : "it has become shorter while it was read";
}

bool blob_unread(const char *path, int error, struct loc loc, struct diags *d) {
  if (file_system_failed(error))
    diag_failure(d, loc, "cannot read %s: %s", path, blob_why(error));
  else
    diag_error(d, loc, "cannot read %s: %s", path, blob_why(error));
  return false;
}

bool blob_alloc(struct blob *b, int64_t len, const char *path, struct loc loc, struct diags *d) {
  *b = (struct blob){.len = len};
  if (len == 0) return true;
  void *map = mmap(NULL, (size_t)len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) {
    diag_failure(d, loc, "%s: no memory for its %lld bytes: %s", path, (long long)len, strerror(errno));
    return false;
  }
  b->map = map, b->map_len = (size_t)len, b->bytes = map;
  return true;
}

void blob_close(struct blob *b) {
  if (b->map) munmap(b->map, b->map_len);
  if (b->in_file) close(b->fd);
  *b = (struct blob){0};
}

bool blob_read(const struct blob *b, int64_t offset, void *out, int64_t len) {
  if (!b->in_file) {
    memcpy(out, b->bytes + offset, (size_t)len);
    return true;
  }
  int64_t got = file_read(b->fd, out, len, offset);
  if (got >= 0) errno = 0;
  return got == len;
}

bool blob_load(struct blob *b, const char *path, struct loc loc, struct diags *d) {
  if (!b->in_file) return true;
  struct blob whole;
  if (!blob_alloc(&whole, b->len, path, loc, d)) return false;
  if (!blob_read(b, 0, whole.map, b->len)) {
    int error = errno;
    blob_close(&whole);
    return blob_unread(path, error, loc, d);
  }
  blob_close(b);
  *b = whole;
  return true;
}

static bool open_file(struct blob *b, const struct file_roots *roots, const char *path, struct loc loc,
                      struct diags *d) {
  const char *cause;
  *b = (struct blob){0};
  b->fd = file_open_within(roots, path, &b->len, &cause);
  b->in_file = b->fd >= 0;
  if (b->in_file && b->len > 0) return true;
  if (!b->in_file && file_system_failed(errno))
    diag_failure(d, loc, "cannot read %s: %s", path, cause);
  else
    diag_error(d, loc, "cannot read %s: %s", path, b->in_file ? "it is empty" : cause);
  blob_close(b);
  return false;
}

bool blob_open(struct blob *b, const struct file_roots *roots, const char *path, blob_size_fn *size,
               int64_t *room, struct loc loc, struct diags *d) {
  uint8_t magic[2];
  if (!open_file(b, roots, path, loc, d)) return false;
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
